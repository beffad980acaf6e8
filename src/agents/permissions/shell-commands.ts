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
