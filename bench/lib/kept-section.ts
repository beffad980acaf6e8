/** Returns a section of RESULTS.md that another program writes, from its heading up to the next one. */
export function sectionUnder(heading: string, text: string): string | undefined {
  const start = text.indexOf(`## ${heading}\n`);
  if (start < 0) return undefined;
  const next = text.indexOf('\n## ', start);
  return text.slice(start, next < 0 ? undefined : next).trimEnd();
}

interface Section {
  readonly heading: string;
  readonly body: string;
  /** Heading of the section before which a new section is inserted. */
  readonly before: string;
}

/** Returns the text with the section replaced, or inserted before the heading `before` if it is new. */
export function withSection(text: string, { heading, body, before }: Section): string {
  const section = `## ${heading}\n\n${body.trim()}`;
  const old = sectionUnder(heading, text);
  if (old !== undefined) return text.replace(old, () => section);
  const at = text.indexOf(`## ${before}\n`);
  return at < 0 ? `${text.trimEnd()}\n\n${section}\n` : `${text.slice(0, at)}${section}\n\n${text.slice(at)}`;
}

/** Heading of the section that `npm run test:planted -- --write` writes. */
export const plantedHeading = 'Planted bugs, found by exploring';
export const publishedHeading = 'Other engines, measured earlier';
