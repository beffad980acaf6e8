/**
 * The simple commands of a shell line, without harmless redirections: `a && b | c 2>&1` is `a`, `b` and `c`.
 * `undefined` if it does more than call programs one after another: a substitution, a subshell, a file that is
 * written or read, a quote that does not end. Nobody can say by its text what such a line does.
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
  // A word as a whole: the digit at its end is not the number of a stream.
  ['text', /^[^\s\\'"`$<>()&|;]+|^[\s\S]/],
];

function nextPiece(rest: string): Piece | undefined {
  for (const [kind, form] of forms) {
    const length = form.exec(rest)?.[0].length;
    if (length) return kind === 'refused' ? undefined : { kind, length };
  }
  return undefined;
}

/** Every piece of a line that could be a command by itself, wherever it stands: for what must never run. */
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
 * What `/bin/bash -lc 'npm test'` runs, where a line is exactly that; otherwise the line as it is. Rules are about
 * what runs, not about the shell around it. A shell at any other place may be a program of the agent's own making.
 */
export function insideShell(line: string): string {
  const [shell = '', flag = '', script, ...others] = wordsOf(line) ?? [];
  return script !== undefined && others.length === 0 && shells.test(shell) && flags.has(flag) ? script : line;
}

/** Quoted text, text in double quotes, one character after a backslash, and plain text. */
const piece = /'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|\\([\s\S])|([^\s'"\\]+)/y;

/** The words of a line that was put together from them; `undefined` if a quote does not end. */
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
