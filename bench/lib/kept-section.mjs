/** A section of RESULTS.md that another program writes: from its heading to the next one. */
export function sectionUnder(heading, text) {
  const start = text.indexOf(`## ${heading}\n`);
  if (start < 0) return undefined;
  const next = text.indexOf('\n## ', start);
  return text.slice(start, next < 0 ? undefined : next).trimEnd();
}

/** The text with the section in the place of the one with the same heading, or before the one that is named. */
export function withSection(text, { heading, body, before }) {
  const section = `## ${heading}\n\n${body.trim()}`;
  const old = sectionUnder(heading, text);
  if (old !== undefined) return text.replace(old, () => section);
  const at = text.indexOf(`## ${before}\n`);
  return at < 0 ? `${text.trimEnd()}\n\n${section}\n` : `${text.slice(0, at)}${section}\n\n${text.slice(at)}`;
}

/** Written by `npm run test:planted -- --write`. */
export const plantedHeading = 'Planted bugs, found by exploring';
export const publishedHeading = 'Other engines, measured earlier';
