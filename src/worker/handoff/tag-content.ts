import { isMap, isScalar, isSeq, parseDocument } from 'yaml';
import { isJsonObject, type Json } from '../../core/index.ts';
import { isTooDeep, keyText } from '../../workflow/yaml/source/index.ts';

/** Content of a tag: a word, or a nested map of names to words. */
export type Words = string | { readonly [name: string]: Words };

export type ReadWords =
  | { readonly kind: 'words'; readonly words: Words }
  | { readonly kind: 'unreadable'; readonly why: string };

/** Reads YAML or JSON leniently and tolerates common mistakes of agents. Never throws. */
export function readWords(content: string): ReadWords {
  const given = withoutFence(content)
    .replace(/^\s*\n/, '')
    .trimEnd();
  const json = readJson(given);
  if (json !== undefined) return { kind: 'words', words: json };
  const attempts = [
    given,
    dedented(given),
    dedented(given.replace(/^[ \t]+/gm, tabs => tabs.replaceAll('\t', '  '))),
  ];
  let why: string | undefined;
  for (const attempt of new Set(attempts)) {
    const read = readYaml(attempt);
    if (read.kind === 'words') return read;
    why ??= read.why;
  }
  const words = readLines(dedented(given)) ?? /^[^\n[{]+$/.exec(given)?.[0];
  return words !== undefined
    ? { kind: 'words', words }
    : { kind: 'unreadable', why: why ?? 'it is not YAML' };
}

const isFence = (line: string | undefined): boolean => /^\s*(`{3,}|~{3,})\s*[\w-]*\s*$/.test(line ?? '');

/** Removes a code fence. An unclosed tag inside a fence leaves only the fence's last line in the content. */
function withoutFence(content: string): string {
  const lines =
    content.trim() === ''
      ? []
      : content
          .replace(/^\s*\n/, '')
          .trimEnd()
          .split('\n');
  const begins = isFence(lines[0]);
  const ends = lines.length > 1 && isFence(lines.at(-1)) && (begins || !/^\s/.test(lines.at(-1) ?? ''));
  return lines.slice(begins ? 1 : 0, ends ? -1 : undefined).join('\n');
}

/** Removes the common indentation. The first line follows the tag, so its own indentation is not counted. */
function dedented(text: string): string {
  const [first = '', ...rest] = text.split('\n');
  const indents = rest.filter(line => line.trim() !== '').map(line => /^\s*/.exec(line)?.[0].length ?? 0);
  const common = Math.min(...indents, Number.MAX_SAFE_INTEGER);
  return [first.trimStart(), ...rest.map(line => line.slice(common))].join('\n');
}

function readJson(text: string): Words | undefined {
  try {
    return wordsOf(JSON.parse(text) as Json);
  } catch {
    return undefined;
  }
}

/** Reads every scalar as the text that was written: `1.10` is not a number, and `yes` not a boolean. */
function readYaml(text: string): ReadWords {
  if (isTooDeep(text)) return { kind: 'unreadable', why: 'it is nested too deeply' };
  const document = parseDocument(text, { schema: 'failsafe', prettyErrors: false, logLevel: 'silent' });
  // Agents do not mean YAML tags or aliases by `!x` and `*x`, so a document that uses them is not read as YAML.
  const [error] = [...document.errors, ...document.warnings];
  if (error) return { kind: 'unreadable', why: error.message };
  try {
    document.toJS({ maxAliasCount: 0 });
    return { kind: 'words', words: wordsOfNode(document.contents, text) };
  } catch (thrown) {
    return { kind: 'unreadable', why: thrown instanceof Error ? thrown.message : String(thrown) };
  }
}

function wordsOfNode(node: unknown, text: string): Words {
  if (isScalar(node)) {
    // Agents do not mean a comment by `fix #12`, so the comment is kept as part of the value.
    const [start, , end] = node.range ?? [0, 0, 0];
    const isCut = node.comment && node.type === 'PLAIN';
    return isCut ? text.slice(start, end).trim() : String(node.value ?? '').trim();
  }
  if (isSeq(node)) {
    const items = node.items.map(item => wordsOfNode(item, text));
    return items.length === 1 && items[0] !== undefined ? items[0] : JSON.stringify(items);
  }
  if (!isMap(node)) return '';
  return Object.fromEntries(
    node.items.map(({ key, value }) => [keyText(key) ?? '', wordsOfNode(value, text)] as const),
  );
}

/** Converts a JSON value to words. */
export function wordsOf(value: Json): Words {
  if (value === null) return '';
  if (isJsonObject(value))
    return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, wordsOf(field)]));
  if (!Array.isArray(value)) return String(value).trim();
  const [only] = value as readonly Json[];
  return value.length === 1 && only !== undefined ? wordsOf(only) : JSON.stringify(value);
}

/** Reads one `name: text` per line, with any text. A line in another form continues the one before. */
function readLines(text: string): Words | undefined {
  const fields: { readonly name: string; readonly lines: string[] }[] = [];
  for (const line of text.split('\n')) {
    const [, name, rest = ''] = /^([A-Za-z_][\w-]*|give up):(?:\s+(.*))?$/i.exec(line) ?? [];
    if (name !== undefined) fields.push({ name, lines: [rest.replace(/^[|>][+-]?\s*$/, '')] });
    else if (fields.length === 0 && line.trim() !== '') return undefined;
    else fields.at(-1)?.lines.push(line);
  }
  if (fields.length === 0) return undefined;
  return Object.fromEntries(
    fields.map(({ name, lines }) => [name, dedented(lines.join('\n').replace(/^\s*\n/, '')).trim()]),
  );
}
