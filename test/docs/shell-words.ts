/** The words of the first command in a line of shell, as far as documentation goes: quotes, and `<run>` as a word. */
export function shellWords(line: string): readonly string[] {
  const words: string[] = [];
  for (const [token] of line.matchAll(
    /\s*(?:&&|\|\||[;&|]|#.*$|(?:<[\w-]+>|'[^']*'|"[^"]*"|[^\s;&|'"])+)/g,
  )) {
    const word = token.trim();
    if (/^(&&|\|\||[;&|]|#.*)$/.test(word)) break;
    words.push(word.replace(/'([^']*)'|"([^"]*)"/g, (_, single, double) => single ?? double));
  }
  return words;
}
