import { createRequire } from 'node:module';
import type * as Unbash from 'unbash';
import type { Command, ParsedScript, SyntaxNode, Word, WordPart } from 'unbash';

export type { Command, Redirection, SyntaxNode, Word } from 'unbash';

let loaded: typeof Unbash | undefined;

/** Loads the parser with the first text that needs one, because most commands of Reprise need none. */
function unbash(): typeof Unbash {
  loaded ??= createRequire(import.meta.url)('unbash') as typeof Unbash;
  return loaded;
}

/** Parses shell text with the grammar of bash. Never throws: faults are in `errors` of the script and of nested scripts. */
export const parseShell = (text: string): ParsedScript => unbash().parse(text);

/** Returns the direct children of a node, including the scripts of substitutions. */
export function shellChildren(node: SyntaxNode): readonly SyntaxNode[] {
  const children: SyntaxNode[] = [];
  unbash().forEachChild(node, child => {
    children.push(child);
  });
  return children;
}

/** Calls `meet` for a node and everything below it, parents first. */
export function walkShell(node: SyntaxNode, meet: (node: SyntaxNode) => void): void {
  const open = [node];
  for (let next = open.pop(); next; next = open.pop()) {
    meet(next);
    open.push(...shellChildren(next).toReversed());
  }
}

/** Pieces of a word after the removal of quotes. `undefined` stands for text that only the running shell knows. */
export type ShellPieces = readonly (string | undefined)[];

export function piecesOf({ parts, value }: Word): ShellPieces {
  return parts === undefined ? [value] : parts.flatMap(piecesOfPart);
}

function piecesOfPart(part: WordPart): ShellPieces {
  switch (part.type) {
    case 'Literal':
    case 'SingleQuoted':
    case 'AnsiCQuoted':
      return [part.value];
    case 'DoubleQuoted':
      return part.parts.flatMap(piecesOfPart);
    default:
      return [undefined];
  }
}

/**
 * Whether a word has text outside quotes on which a shell would act. The parser then took it for plain text by mistake,
 * as it does with `3<(ls)`, and its reading must not be trusted.
 */
export function isMisread(node: SyntaxNode): boolean {
  if (node.type === 'DoubleQuoted')
    return node.parts.some(part => part.type === 'Literal' && hasSigns(part.text, /["`]|\$[\w({[]/));
  if (node.type !== 'Word') return false;
  const literals = node.parts ? node.parts.filter(({ type }) => type === 'Literal') : [node];
  return literals.some(({ text }) => hasSigns(text, /[<>()|&;`'"\s]|\$[\w({[]/));
}

const hasSigns = (text: string, signs: RegExp): boolean => signs.test(text.replace(/\\[\s\S]/g, ''));

/** Returns the text of a word if it is known before the shell runs. */
export function fixedText(word: Word): string | undefined {
  const pieces = piecesOf(word);
  return pieces.includes(undefined) ? undefined : pieces.join('');
}

/** Returns the name and the arguments of a command as words. An assignment such as `export a=b` counts as a word. */
export function wordsOf({ name, args }: Command): readonly Word[] {
  const asWord = (arg: Command['args'][number]): Word =>
    arg.type === 'Word' ? arg : { ...arg, type: 'Word', value: arg.text, parts: partsOfAssignment(arg) };
  return name ? [name, ...args.map(asWord)] : [];
}

function partsOfAssignment({
  text,
  pos,
  value,
}: Exclude<Command['args'][number], Word>): readonly WordPart[] {
  const start = text.slice(0, value.pos - pos);
  const literal = { type: 'Literal', pos, end: value.pos, value: start, text: start } as const;
  if (value.type === 'Word' && value.parts === undefined) return [literal, { ...value, type: 'Literal' }];
  const computed = { type: 'SimpleExpansion', pos: value.pos, end: value.end, text: '' } as const;
  return [literal, ...(value.type === 'Word' ? (value.parts ?? []) : [computed])];
}

/** Returns the name of a program without its folder. */
export const programName = (path: string): string => path.replace(/^.*\//s, '');

/** Shells, which run text that they receive as an argument or as input. */
export const shellPrograms: ReadonlySet<string> = new Set(
  'sh bash dash zsh ksh mksh ash rbash fish csh tcsh'.split(' '),
);

/**
 * Programs and builtins that start the command in their arguments, each with its options that take a value. `timeout`
 * also takes a duration before the command.
 */
export const wrapperPrograms: ReadonlyMap<string, string> = new Map([
  ['env', 'u C a'],
  ['command', ''],
  ['builtin', ''],
  ['exec', 'a'],
  ['nohup', ''],
  ['time', 'f o'],
  ['sudo', 'u g h p C D R T U r t'],
  ['doas', 'u C'],
  ['xargs', 'I n P L d E s a'],
  ['nice', 'n'],
  ['ionice', 'c n p'],
  ['timeout', 's k'],
  ['stdbuf', 'i o e'],
  ['setsid', ''],
  ['caffeinate', 't w'],
  ['noglob', ''],
  ['nocorrect', ''],
  ['-', ''],
  ['busybox', ''],
  ['chrt', 'T P D'],
  ['taskset', 'p'],
  ['unbuffer', ''],
  ['strace', 'e o p s u'],
]);

/** Words of a command. `undefined` stands for a word that only the running shell knows. */
export type KnownWords = readonly (string | undefined)[];

/**
 * Returns the index of the command that a wrapper such as `env` or `sudo` starts, `undefined` if it starts none, and
 * `unknown` if that cannot be told.
 */
export function innerCommand(words: KnownWords): number | 'unknown' | undefined {
  const name = programName(words[0] ?? '');
  const withValue = wrapperPrograms.get(name)?.split(' ') ?? [];
  let isAfterDuration = name !== 'timeout';
  for (let at = 1; at < words.length; at++) {
    const word = words[at];
    if (word === undefined) return 'unknown';
    if (name === 'env' && /^(?:-\w*S|--s)/.test(word)) return 'unknown';
    if (word === '--') continue;
    if (word.startsWith('--') && !word.includes('=')) return longOption(words, at);
    if (/^-./.test(word)) {
      if (withValue.includes(word.slice(1))) at++;
    } else if (!/^\w+=/.test(word)) {
      if (isAfterDuration) return at;
      isAfterDuration = true;
    }
  }
  return undefined;
}

/** A long option may take the next word as its value, so only a command right after it that is an option is certain. */
function longOption(words: KnownWords, at: number): number | 'unknown' | undefined {
  const isLast = words.slice(at + 1).every(word => word?.startsWith('-'));
  return isLast ? undefined : 'unknown';
}

interface ShellCall {
  /** Index of the script or of the file that the shell runs. Absent if it reads its input. */
  readonly script?: number | undefined;
  /** Whether the script is text (`-c`), not a file. */
  readonly isText: boolean;
}

/** Reads the arguments of a shell. */
export function shellCall(words: KnownWords): ShellCall {
  let isText = false;
  let readsInput = false;
  for (let at = 1; at < words.length; at++) {
    const word = words[at];
    if (word === undefined || !/^[-+]./.test(word)) {
      if (word === '-') continue;
      return readsInput && !isText ? { isText } : { script: at, isText };
    }
    if (/^-\w*c/.test(word)) isText = true;
    if (/^-\w*s/.test(word)) readsInput = true;
    if (/^[-+]\w*[oO]$/.test(word) || /^--(?:rcfile|init-file)$/.test(word)) at++;
  }
  return { isText };
}
