export interface FrontMatter {
  /** At the same place as in the file, so that lines and columns are the same; `undefined` if there is none. */
  readonly yaml: string | undefined;
  /** What stands below, without space around it. */
  readonly body: string;
  /** Where the line is that ends the front matter, as an offset in the text; `undefined` if it never ends. */
  readonly endsAt: number | undefined;
  /** What to add to an offset in `yaml` for the same place in the text. */
  readonly shift: number;
}

/** Splits a markdown file at the lines `---` around its front matter. Without them, all of it is the body. */
export function splitFrontMatter(text: string): FrontMatter {
  const mark = text.startsWith('\uFEFF') ? 1 : 0;
  const content = text.slice(mark);
  const lines = content.split('\n');
  const isFence = (line: string) => /^---[ \t]*\r?$/.test(line);
  const opening = lines[0] ?? '';
  if (!isFence(opening)) return { yaml: undefined, body: content.trim(), endsAt: undefined, shift: mark };
  const end = lines.findIndex((line, index) => index > 0 && isFence(line));
  const last = end < 0 ? lines.length : end;
  return {
    yaml: ['', ...lines.slice(1, last), ''].join('\n'),
    body: lines
      .slice(last + 1)
      .join('\n')
      .trim(),
    endsAt: end < 0 ? undefined : mark + lines.slice(0, end).join('\n').length + 1,
    shift: mark + opening.length,
  };
}
