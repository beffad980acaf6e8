/** Splits a text as a shell would, but expands nothing. `undefined` if a quote does not close. */
export function splitArguments(text: string): readonly string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (/\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (char === "'") {
      const end = text.indexOf("'", at + 1);
      if (end < 0) return undefined;
      word = (word ?? '') + text.slice(at + 1, end);
      at = end;
    } else if (char === '"') {
      const quoted = /"((?:[^"\\]|\\[\s\S])*)"/y;
      quoted.lastIndex = at;
      const [whole, inner] = quoted.exec(text) ?? [];
      if (whole === undefined || inner === undefined) return undefined;
      word = (word ?? '') + unescaped(inner);
      at += whole.length - 1;
    } else if (char === '\\') {
      if (at + 1 === text.length) return undefined;
      at++;
      // A line that goes on with a backslash is one line.
      word = text.charAt(at) === '\n' ? word : (word ?? '') + text.charAt(at);
    } else word = (word ?? '') + char;
  }
  if (word !== undefined) words.push(word);
  return words;
}

/** In double quotes a backslash stands for itself unless what follows it would mean something. */
const unescaped = (inner: string): string =>
  inner.replace(/\\([$`"\\\n])/g, (_, char: string) => (char === '\n' ? '' : char));
