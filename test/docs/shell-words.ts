/** Splits the first command of a shell line into words. Supports only what the documentation uses: quotes and `<run>`. */
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
