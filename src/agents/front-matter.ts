export interface FrontMatter {
  /** At the same place as in the file, so that lines and columns are the same; `undefined` if there is none. */
  readonly yaml: string | undefined;
  /** What stands below, without space around it. */
  readonly body: string;
}

/** Splits a markdown file at the lines `---` around its front matter. Without them, all of it is the body. */
export function splitFrontMatter(text: string): FrontMatter {
  const content = text.startsWith('\uFEFF') ? text.slice(1) : text;
  const lines = content.split('\n');
  const isFence = (line: string) => /^---[ \t]*\r?$/.test(line);
  if (!isFence(lines[0] ?? '')) return { yaml: undefined, body: content.trim() };
  const end = lines.findIndex((line, index) => index > 0 && isFence(line));
  const last = end < 0 ? lines.length : end;
  return {
    yaml: ['', ...lines.slice(1, last), ''].join('\n'),
    body: lines
      .slice(last + 1)
      .join('\n')
      .trim(),
  };
}
