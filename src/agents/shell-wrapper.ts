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
