import {
  type Command,
  fixedText,
  isMisread,
  parseShell,
  piecesOf,
  type Redirection,
  type ShellPieces,
  type SyntaxNode,
  shellChildren,
  walkShell,
  wordsOf,
} from '../../workflow/shell-grammar.ts';

/** A call of one program, without its redirections. */
export interface SimpleCommand {
  /** Assignments before the name (`CI=1`), the name, and the arguments. */
  readonly words: readonly ShellPieces[];
  readonly assignments: number;
  /** The words as written. */
  readonly text: string;
}

/** The commands of a line, or the reason why its text does not tell what it does. */
export type LineReading =
  | { readonly kind: 'commands'; readonly commands: readonly SimpleCommand[] }
  | { readonly kind: 'undecided'; readonly why: string };

/** Longer lines, and lines with more expansions, are not judged, so that the time for a decision has a bound. */
const longestLine = 100_000;
const mostExpansions = 1000;

/**
 * Reads a line that only calls programs, in lists and pipes: `a && b | c 2>&1` is `a`, `b` and `c`. Any other line is
 * undecided: a substitution, a subshell, a loop, a redirection from or to a file, text that bash would not accept.
 */
export function readLine(line: string): LineReading {
  const commands: SimpleCommand[] = [];
  const why = whyUnread(line) ?? readScript(line, commands);
  return why === undefined ? { kind: 'commands', commands } : { kind: 'undecided', why };
}

/** Returns the reason why a line cannot be parsed reliably, if there is one. */
export function whyUnread(line: string): string | undefined {
  if (line.length > longestLine) return `it is longer than ${longestLine} characters`;
  if ((line.match(/\$[({]|`/g)?.length ?? 0) > mostExpansions) return 'it contains too many expansions';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: shells disagree about control characters.
  return /[\0-\x08\x0b-\x1f\x7f]/.test(line) ? 'it contains control characters' : undefined;
}

function readScript(line: string, commands: SimpleCommand[]): string | undefined {
  const script = parseShell(line);
  return (
    addCommands(script, commands) ?? (isCovered(line, script) ? undefined : 'it contains unknown syntax')
  );
}

/** Whether a line consists of the words and redirections that were read, and of nothing but separators between them. */
function isCovered(line: string, script: SyntaxNode): boolean {
  let rest = line;
  walkShell(script, node => {
    if (node.type === 'Word' || node.type === 'Assignment' || node.type === 'Redirect')
      rest = rest.slice(0, node.pos) + '\n'.repeat(node.end - node.pos) + rest.slice(node.end);
  });
  return /^(?:[\s;&|!]|\\\n|time(?=\s)|#[^\n]*)*$/.test(rest);
}

/** Adds the commands of a node. Returns the reason if there is anything else in it. */
function addCommands(node: SyntaxNode, commands: SimpleCommand[]): string | undefined {
  switch (node.type) {
    case 'Script':
      if (node.errors?.[0]) return `it is not valid shell text (${node.errors[0].message})`;
      return firstReason(node, commands);
    case 'Statement':
    case 'AndOr':
    case 'Pipeline':
      return firstReason(node, commands);
    case 'Negation':
    case 'Time':
      return undefined;
    case 'Command':
      return addCommand(node, commands);
    default:
      return 'it contains more than calls of programs in a list or a pipe';
  }
}

function firstReason(node: SyntaxNode, commands: SimpleCommand[]): string | undefined {
  for (const child of shellChildren(node)) {
    const why = addCommands(child, commands);
    if (why !== undefined) return why;
  }
  return undefined;
}

function addCommand(command: Command, commands: SimpleCommand[]): string | undefined {
  const { name, prefix, redirects } = command;
  const assigned = prefix.flatMap(part => (part.type === 'Assignment' ? [part] : []));
  if (!name) return 'it sets variables without calling a program';
  if (fixedText(name) === undefined) return `the name of a program is computed (\`${name.text}\`)`;
  if (!redirects.every(isHarmless)) return 'it redirects from or to a file';
  for (const { value, index } of assigned)
    if (value.type !== 'Word' || index || fixedText(value) === undefined)
      return 'it computes the value of a variable';
  const words = wordsOf(command);
  for (const word of words) {
    const hidden = hiddenIn(word);
    if (hidden !== undefined) return `it contains \`${hidden}\`, whose text does not tell what it does`;
  }
  commands.push({
    words: [...assigned.map(({ text }) => [text]), ...words.map(piecesOf)],
    assignments: assigned.length,
    text: [...assigned, ...words].map(({ text }) => text).join(' '),
  });
  return undefined;
}

/** Parts of a word that can only produce text. A plain variable can; `${x@P}`, `$(...)` and `$((...))` run code. */
function isPlain(node: SyntaxNode): boolean {
  switch (node.type) {
    case 'Word':
    case 'Literal':
    case 'SingleQuoted':
    case 'DoubleQuoted':
    case 'SimpleExpansion':
    case 'Glob':
    case 'BraceExpansion':
      return true;
    case 'ParameterExpansion':
      return node.operation === undefined && node.index === undefined && node.prefix === undefined;
    default:
      return false;
  }
}

function hiddenIn(word: SyntaxNode): string | undefined {
  let hidden: string | undefined;
  walkShell(word, node => {
    if (!isPlain(node) || isMisread(node)) hidden ??= 'text' in node ? node.text : node.type;
  });
  return hidden;
}

/** Whether a redirection touches no file: `2>&1`, `>/dev/null`, `</dev/null`. */
function isHarmless(redirection: Redirection): boolean {
  if (redirection.type !== 'Redirect' || !redirection.target) return false;
  const { operator, descriptor, target } = redirection;
  if (descriptor?.type === 'FileDescriptorVariable') return false;
  const to = fixedText(target);
  if (to === '/dev/null') return true;
  return operator === '>&' && (to === '1' || to === '2');
}

const shells = /^(?:\/usr\/local|\/opt\/homebrew|\/usr)?\/bin\/(?:ba|z|da)?sh$/;
const flags = new Set(['-c', '-lc']);

/**
 * Returns the script inside a line such as `/bin/bash -lc 'npm test'`, and any other line unchanged. Rules apply to the
 * command, not to the shell around it. A shell at any other path could be a program that the agent wrote.
 */
export function insideShell(line: string): string {
  if (!/^\S+sh\s+-l?c\s/.test(line) || whyUnread(line) !== undefined) return line;
  const { commands, errors } = parseShell(line);
  const command = commands.length === 1 ? commands[0]?.command : undefined;
  if (errors?.length || command?.type !== 'Command' || command.prefix.length + command.redirects.length > 0)
    return line;
  const [shell = '', flag = '', script, ...others] = wordsOf(command).map(fixedText);
  return script !== undefined && others.length === 0 && shells.test(shell) && flags.has(flag) ? script : line;
}
