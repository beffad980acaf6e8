/**
 * Splits a shell line into simple commands without harmless redirections: `a && b | c 2>&1` is `a`, `b` and `c`.
 * Returns `undefined` if the line does more than call programs: a substitution, a subshell, a redirection from or to a
 * file, an unterminated quote. The text of such a line does not tell what it does.
 */
export function simpleCommands(line: string): readonly string[] | undefined {
  const commands: string[] = [];
  let current = '';
  for (let at = 0; at < line.length; ) {
    const rest = line.slice(at);
    const piece = nextPiece(rest);
    if (piece === undefined) return undefined;
    at += piece.length;
    if (piece.kind === 'text') current += rest.slice(0, piece.length);
    if (piece.kind === 'separator') {
      commands.push(current);
      current = '';
    }
  }
  return [...commands, current].map(command => command.trim()).filter(command => command !== '');
}

interface Piece {
  readonly kind: 'text' | 'separator' | 'redirection';
  readonly length: number;
}

const forms: readonly (readonly [Piece['kind'] | 'refused', RegExp])[] = [
  ['text', /^\\[\s\S]/],
  ['text', /^'[^']*'/],
  ['refused', /^\$['"(]|^`/],
  ['text', /^"(?:[^"\\$`]|\\[\s\S]|\$(?![('"`]))*"/],
  ['redirection', /^(?:[12]|&)?>>?\s*\/dev\/null(?![^\s;&|])/],
  ['redirection', /^[12]?>&[12](?![^\s;&|])/],
  ['separator', /^(?:&&|\|\||;|\||&|\r?\n)/],
  ['refused', /^[<>()'"\\]/],
  // Match whole words, because a digit at the end of a word is not a stream number.
  ['text', /^[^\s\\'"`$<>()&|;]+|^[\s\S]/],
];

function nextPiece(rest: string): Piece | undefined {
  for (const [kind, form] of forms) {
    const length = form.exec(rest)?.[0].length;
    if (length) return kind === 'refused' ? undefined : { kind, length };
  }
  return undefined;
}

/** Returns every part of a line that could be a command, for rules that deny commands. */
export const possibleCommands = (line: string): readonly string[] => [
  line.trim(),
  ...line
    .split(/[;&|\n()`{}"']|\$\(/)
    .map(part => part.trim())
    .filter(part => part !== ''),
];

const shells = /^(?:\/usr\/local|\/opt\/homebrew|\/usr)?\/bin\/(?:ba|z|da)?sh$/;
const flags = new Set(['-c', '-lc']);

/**
 * Returns the script inside a line such as `/bin/bash -lc 'npm test'`, and any other line unchanged. Rules apply to the
 * command, not to the shell around it. A shell at any other path could be a program that the agent wrote.
 */
export function insideShell(line: string): string {
  const [shell = '', flag = '', script, ...others] = wordsOf(line) ?? [];
  return script !== undefined && others.length === 0 && shells.test(shell) && flags.has(flag) ? script : line;
}

/** Single-quoted text, double-quoted text, one escaped character, or plain text. */
const piece = /'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|\\([\s\S])|([^\s'"\\]+)/y;

/** Splits a line into words as a shell does. Returns `undefined` if a quote is not terminated. */
function wordsOf(line: string): readonly string[] | undefined {
  const words: string[] = [];
  let isInWord = false;
  for (let at = 0; at < line.length; ) {
    if (/\s/.test(line[at] ?? '')) {
      isInWord = false;
      at++;
      continue;
    }
    piece.lastIndex = at;
    const found = piece.exec(line);
    if (!found) return undefined;
    const [whole, single, double, escaped, plain] = found;
    const text = single ?? double?.replace(/\\([$`"\\\n])/g, '$1') ?? escaped ?? plain ?? '';
    words.push(isInWord ? `${words.pop()}${text}` : text);
    isInWord = true;
    at += whole.length;
  }
  return words;
}
