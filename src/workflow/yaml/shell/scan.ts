import { closingMark, openingMark } from '../../expression/template.ts';
import {
  type Command,
  fixedText,
  parseShell,
  type SyntaxNode,
  shellChildren,
  walkShell,
  wordsOf,
} from '../../shell-grammar.ts';
import { type CommandRefusal, judgeArgument, readerOf, runsItsInput } from './positions.ts';

/** How the shell reads the position of a `${{ }}`: how it is quoted, or why no value may stand there. */
export type SlotPlace = 'bare' | 'double' | 'single' | 'ansi' | 'document' | RefusedPlace | CommandRefusal;

/** Positions where the shell would not expand a value, or would evaluate it. */
type RefusedPlace =
  | 'quoted-document'
  | 'delimiter'
  | 'arithmetic'
  | 'parameter'
  | 'backticks'
  | 'unreadable'
  | { readonly kind: 'variable'; readonly by: string };

/** A `${{ }}` in a script, including the braces. */
export interface Slot {
  readonly start: number;
  readonly end: number;
  readonly place: SlotPlace;
  /** True if a literal `$` precedes the slot. It must not combine with the replacement of the slot. */
  readonly afterDollar: boolean;
}

interface ShellScan {
  readonly slots: readonly Slot[];
  /** Offset of a `${{` that is never closed. */
  readonly unclosed: number | undefined;
  /** First fault of the script itself, if its syntax is not valid. */
  readonly fault: { readonly message: string; readonly at: number } | undefined;
}

type Mark = Omit<Slot, 'place'>;

/** Finds every `${{ }}` in a script with its position. Ignores those in comments, and those after a backslash. */
export function scanShell(text: string, shell: 'bash' | 'sh'): ShellScan {
  const { source, marks, unclosed } = markSlots(text);
  const script = parseScript(source, shell);
  const numbers = evaluatedVariables(script);
  const places = new Map<Mark, SlotPlace | 'text'>();
  visit(script, [], (node, path) => {
    for (const mark of marks) {
      const quoting = places.has(mark) ? undefined : quotingOf(node, path, mark, { source, shell });
      if (quoting === undefined) continue;
      const refusal = quoting === 'text' ? undefined : refusalOf([...path, node], numbers);
      places.set(mark, refusal ?? quoting);
    }
  });
  const slots = marks.flatMap(mark => {
    const place = places.get(mark) ?? 'unreadable';
    return place === 'text' ? [] : [{ ...mark, place }];
  });
  return { slots, unclosed, fault: slots.length > 0 ? faultIn(script) : undefined };
}

/**
 * Parses a script with the grammar of bash. Other shells take a single quote for text in a place where bash does not:
 * in `"${x:-it's}"`.
 */
function parseScript(source: string, shell: 'bash' | 'sh'): ReturnType<typeof parseShell> {
  const script = parseShell(source);
  if (shell === 'bash' || !script.errors?.length) return script;
  return parseShell(
    source.replace(/"\$\{\w+:?[-=?+][^{}"`$]*\}/g, expansion => expansion.replaceAll("'", '_')),
  );
}

interface MarkedScript {
  /** The script with a plain variable of the same length in the place of each `${{ }}`. */
  readonly source: string;
  readonly marks: readonly Mark[];
  readonly unclosed: number | undefined;
}

function markSlots(text: string): MarkedScript {
  const marks: Mark[] = [];
  let source = '';
  for (
    let start = text.indexOf(openingMark);
    start !== -1;
    start = text.indexOf(openingMark, source.length)
  ) {
    const before = source + text.slice(source.length, start);
    const lineEnd = endOfLine(text, start);
    if (isInComment(before)) {
      source = before + text.slice(start, lineEnd);
      continue;
    }
    const close = closingMark(text, start);
    if (close === undefined) return { source: before, marks, unclosed: start };
    const end = close + 2;
    // `$$` would be the number of the process. Here, the first `$` is text.
    const afterDollar = /(?:^|[^\\$])(?:\\\\)*(?:\$\$)*\$$/.test(before);
    source = `${afterDollar ? `${before.slice(0, -1)}_` : before}\${${'R'.repeat(end - start - 3)}}`;
    marks.push({ start, end, afterDollar });
  }
  return { source: source + text.slice(source.length), marks, unclosed: undefined };
}

const endOfLine = (text: string, from: number): number => {
  const newline = text.indexOf('\n', from);
  return newline === -1 ? text.length : newline;
};

/** Whether the text after `before` is a comment. A `#` in a word or in quotes starts none, so only the parser can tell. */
function isInComment(before: string): boolean {
  if (!/(?:^|[\s;&|()`])#[^\n]*$/.test(before)) return false;
  let isSeen = false;
  walkShell(parseShell(`${before}\${R}`), node => {
    const isLeaf = node.type === 'SingleQuoted' || node.type === 'AnsiCQuoted' || node.type === 'HereDocBody';
    const isHere = node.pos <= before.length && node.end > before.length;
    isSeen ||= isHere && (isLeaf || node.type === 'Word' || node.type === 'ParameterExpansion');
  });
  return !isSeen;
}

type Meet = (node: SyntaxNode, path: readonly SyntaxNode[]) => void;

function visit(node: SyntaxNode, path: readonly SyntaxNode[], meet: Meet): void {
  meet(node, path);
  const inner = [...path, node];
  for (const child of shellChildren(node)) visit(child, inner, meet);
}

interface Quoting {
  readonly source: string;
  readonly shell: 'bash' | 'sh';
}

/** Returns how the shell reads a slot if `node` is the innermost node that contains it. */
function quotingOf(
  node: SyntaxNode,
  path: readonly SyntaxNode[],
  { start, end }: Mark,
  { source, shell }: Quoting,
): SlotPlace | 'text' | undefined {
  // Positions in backticks with backslashes do not refer to this text.
  const backticks = [...path, node].find(isEscapedBackticks);
  if (backticks) return backticks === node && node.pos <= start && end <= node.end ? 'backticks' : undefined;
  if (node.pos > start || node.end < end) return undefined;
  switch (node.type) {
    case 'HereDocDelimiter':
      return 'delimiter';
    case 'HereDocBody':
      return node.parts === undefined ? 'quoted-document' : undefined;
    case 'SingleQuoted':
      return 'single';
    case 'AnsiCQuoted':
      // In other shells, `$'` is a dollar sign and a quote, in which a backslash is text.
      if (shell === 'sh') return node.text.includes('\\') ? 'unreadable' : 'single';
      return isEscaped(source, start) ? 'text' : 'ansi';
    case 'ParameterExpansion':
      return node.pos === start && node.end === end ? quotingAt(path) : undefined;
    case 'Literal':
      return isEscaped(source, start) ? 'text' : 'unreadable';
    case 'Word':
      if (node.parts !== undefined) return undefined;
      return isEscaped(source, start) ? 'text' : 'unreadable';
    default:
      return undefined;
  }
}

const isEscapedBackticks = (node: SyntaxNode): boolean =>
  node.type === 'CommandExpansion' && node.text.startsWith('`') && node.text.includes('\\');

const isEscaped = (source: string, start: number): boolean =>
  /(?:^|[^\\])(?:\\\\)*\\$/.test(source.slice(0, start));

function quotingAt(path: readonly SyntaxNode[]): SlotPlace {
  switch (path.at(-1)?.type) {
    case 'DoubleQuoted':
    case 'LocaleString':
      return 'double';
    case 'HereDocBody':
      return 'document';
    default:
      return 'bare';
  }
}

/** Variables whose value bash evaluates when it is assigned. */
const integers = ['RANDOM', 'SRANDOM', 'OPTIND', 'SECONDS'];
/** Variables whose value a shell runs. */
const commands: ReadonlySet<string> = new Set([
  'PS0',
  'PS1',
  'PS2',
  'PS4',
  'PROMPT_COMMAND',
  'BASH_ENV',
  'ENV',
]);

/** Returns the names that a script declares as numbers or references (`declare -i n`), and those that always are. */
function evaluatedVariables(script: SyntaxNode): ReadonlySet<string> {
  const names = new Set(integers);
  walkShell(script, node => {
    if (node.type !== 'Command' || !/^(?:declare|typeset|local)$/.test(node.name?.value ?? '')) return;
    const given = wordsOf(node)
      .slice(1)
      .map(word => fixedText(word) ?? word.text);
    if (!given.some(word => /^-\w*[in]/.test(word))) return;
    for (const word of given) names.add(/^\w+/.exec(word)?.[0] ?? '');
  });
  return names;
}

/** Returns the reason why a value must not stand at the end of a path, judged from the outside to the inside. */
function refusalOf(path: readonly SyntaxNode[], numbers: ReadonlySet<string>): SlotPlace | undefined {
  const innermost = path.findLastIndex(({ type }) => type === 'Script');
  for (const [index, node] of path.slice(0, -1).entries()) {
    const child = path[index + 1];
    const refusal = child && refusalAt(node, child, { numbers, isInnermost: index > innermost });
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

interface Surroundings {
  readonly numbers: ReadonlySet<string>;
  /** False if the value stands in a substitution below the node, which then uses only its output. */
  readonly isInnermost: boolean;
}

function refusalAt(
  node: SyntaxNode,
  child: SyntaxNode,
  { numbers, isInnermost }: Surroundings,
): SlotPlace | undefined {
  switch (node.type) {
    case 'ArithmeticFor':
      return child.type.startsWith('Arithmetic') ? 'arithmetic' : undefined;
    case 'ParameterExpansion':
      if (child === node.index) return 'arithmetic';
      if (node.operation?.type === 'Slice' || node.operation?.type === 'Transform') return 'arithmetic';
      return isInnermost ? 'parameter' : undefined;
    case 'Assignment':
      if (child === node.index || numbers.has(node.name)) return 'arithmetic';
      return commands.has(node.name) ? { kind: 'variable', by: node.name } : undefined;
    case 'ArrayValue':
      return child.type === 'Word' && child.text.startsWith('[') ? 'arithmetic' : undefined;
    case 'TestUnary':
      return node.operator === '-v' || node.operator === '-R' ? 'arithmetic' : undefined;
    case 'TestBinary':
      return /^-(?:eq|ne|lt|le|gt|ge)$/.test(node.operator) ? 'arithmetic' : undefined;
    case 'For':
    case 'Select':
      return numbers.has(node.name.value) && child.type === 'Word' ? 'arithmetic' : undefined;
    case 'Pipeline':
      return inputRefusal(node.commands.slice(node.commands.indexOf(child as Command) + 1));
    case 'Redirected':
      return child === node.command ? undefined : inputRefusal([node.command]);
    case 'Command':
      return commandRefusal(node, child, numbers);
    default:
      return node.type.startsWith('Arithmetic') ? 'arithmetic' : undefined;
  }
}

const inputRefusal = (receivers: readonly SyntaxNode[]): SlotPlace | undefined => {
  const by = receivers.map(runsItsInput).find(name => name !== undefined);
  return by === undefined ? undefined : { kind: 'input', by };
};

function commandRefusal(
  command: Command,
  child: SyntaxNode,
  numbers: ReadonlySet<string>,
): SlotPlace | undefined {
  // `tee >(sh)` hands everything that it reads and prints to a shell.
  const outputs = shellChildren(command)
    .flatMap(word => shellChildren(word))
    .filter(part => part.type === 'ProcessSubstitution' && part.operator === '>');
  const output = inputRefusal(outputs);
  if (output !== undefined) return output;
  if (child.type === 'Word' || (child.type === 'Assignment' && command.name && child.pos > command.name.pos))
    return judgeArgument(command, child);
  if (child.type === 'Assignment') return undefined;
  const reader = readerOf(command);
  if (reader !== undefined) return { kind: 'input', by: reader };
  const isRead = /^(?:read|mapfile|readarray)$/.test(command.name?.value ?? '');
  return isRead && wordsOf(command).some(({ value }) => numbers.has(value)) ? 'arithmetic' : undefined;
}

function faultIn(script: SyntaxNode): ShellScan['fault'] {
  let fault: ShellScan['fault'];
  walkShell(script, node => {
    const error = node.type === 'Script' ? node.errors?.[0] : undefined;
    if (error) fault ??= { message: error.message, at: error.pos };
  });
  return fault;
}
