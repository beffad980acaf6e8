type Files = Readonly<Record<string, string>>;

/**
 * Returns the tapes, sessions and patches of a recording with every value replaced that differs between recordings: ids,
 * times, ports, and the commits and packs derived from them.
 */
export function withoutVolatileValues(files: Files): Files {
  const kept = Object.entries(files).filter(([file]) => /\.(vcr|jsonl|patch)$/.test(file));
  const ids = kept.filter(([file]) => file.endsWith('.vcr')).flatMap(([, tape]) => idsOn(tape));
  return Object.fromEntries(kept.map(([file, text]) => [file, steady(text, ids)]));
}

function idsOn(tape: string): readonly string[] {
  const entries = tape.trimEnd().split('\n').slice(1);
  return entries.flatMap(line => {
    const { op, ok } = JSON.parse(line);
    return op === 'ids.new' ? Object.values<string>(ok) : op === 'ids.receipt' ? [ok] : [];
  });
}

const steady = (text: string, ids: readonly string[]): string =>
  ids
    .reduce((before, id) => before.replaceAll(id, '<id>'), text)
    .replace(/\b[0-9a-f]{64}\b/g, '<hash>')
    .replace(/\b[0-9a-f]{40}\b/g, '<commit>')
    .replace(/\b\d{13}\b/g, '<time>')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replace(/"first":\d+/g, '"first":"<port>"');
