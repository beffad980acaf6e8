import { openingTag } from '../../agents/index.ts';
import { isJsonObject, type Json } from '../../core/index.ts';

/** Content of a tag: one word, or a text for each name. */
export type TagContent = string | Readonly<Record<string, string>>;

export type ReadTag =
  | { readonly kind: 'content'; readonly content: TagContent }
  /** A sentence that tells the agent what to correct. */
  | { readonly kind: 'problem'; readonly message: string };

/** Maximum length of the content, which ends up in prompts. */
const maxLength = 64 * 1024;

/**
 * Reads the `<next>` tag at the end of a message: on lines of its own, outside quotes and code fences. A tag anywhere
 * else is only mentioned: text from a task, a file or a tool must not decide what lands.
 */
export function readTag(text: string): ReadTag {
  const lines = text.trimEnd().split('\n');
  const opening = lines.findLastIndex(line => openingTag.test(line));
  const [, indent = '', key] = openingTag.exec(lines[opening] ?? '') ?? [];
  const block = lines.slice(opening).join('\n');
  if (opening < 0 || indent.length > 3 || !block.endsWith('</next>'))
    return problem(
      'Your last message does not end with a `<next>` tag. Put the tag on its own lines at the very end, outside quotes and code fences.',
    );
  if (isInFence(lines.slice(0, opening)))
    return problem('The `<next>` tag is inside a code fence. Write it outside, at the very end.');
  if (key === 'missing')
    return problem('The `<next>` tag has no key. Copy the tag with its `key` from the end of the prompt.');
  if (key !== undefined)
    return problem('The `<next>` tag has the wrong key. Copy the tag from the end of the latest prompt.');
  if (isLeftOpen(lines.slice(0, opening)))
    return problem('An earlier `<next>` tag is not closed. Write exactly one.');
  const content = block.slice(block.indexOf('>') + 1, -'</next>'.length);
  if (/<\/?next/i.test(content)) return problem('The `<next>` tag contains another one. Write exactly one.');
  if (content.length > maxLength)
    return problem(`The \`<next>\` tag is longer than ${maxLength / 1024} KiB. Shorten it.`);
  return readContent(content.replaceAll('\r', ''));
}

const problem = (message: string): ReadTag => ({ kind: 'problem', message });

function isLeftOpen(lines: readonly string[]): boolean {
  const opening = lines.findLastIndex(line => openingTag.test(line));
  return opening >= 0 && !lines.slice(opening).some(line => line.includes('</next>'));
}

/** Whether a fence is still open after these lines, by the rules of Markdown. */
function isInFence(lines: readonly string[]): boolean {
  let open: string | undefined;
  for (const line of lines) {
    const [, fence = '', info = ''] = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line) ?? [];
    if (fence === '') continue;
    if (open === undefined) open = fence;
    else if (fence.startsWith(open) && info.trim() === '') open = undefined;
  }
  return open !== undefined;
}

const field = /^([\p{L}_][\p{L}\p{N}_.-]*):(?:[ \t]+(.*))?$/u;

/** Reads one word, a JSON object, or a line `name: text` for each name. After `|`, the indented lines are the text. */
function readContent(written: string): ReadTag {
  const content = written.replace(/^\s*\n/, '').trimEnd();
  if (content.trim() === '') return problem('The `<next>` tag is empty.');
  if (content.trimStart().startsWith('{')) return readObject(content);
  const [first = '', ...rest] = content.split('\n');
  if (rest.length === 0 && !field.test(first.trim())) return { kind: 'content', content: first.trim() };
  const fields: { readonly name: string; readonly lines: string[] }[] = [];
  for (const line of [first.trim(), ...rest]) {
    const [, name, text = ''] = field.exec(line) ?? [];
    if (name !== undefined) fields.push({ name, lines: [text] });
    else if (fields.length === 0 || /^\S/.test(line))
      return problem(
        `The \`<next>\` tag has a line that is not \`name: text\`: ${shown(line)}. Indent the lines of a longer text, after \`name: |\`.`,
      );
    else fields.at(-1)?.lines.push(line);
  }
  return found(Object.fromEntries(fields.map(({ name, lines }) => [name, textOf(lines)])));
}

const found = (content: TagContent): ReadTag => ({ kind: 'content', content });

function readObject(text: string): ReadTag {
  try {
    const value = JSON.parse(text) as Json;
    if (isJsonObject(value)) return { kind: 'content', content: textsOf(value) };
  } catch {
    // Reported below.
  }
  return problem('The `<next>` tag starts with `{` but is not a JSON object.');
}

/** Converts the fields of an object to texts. */
export const textsOf = (value: Readonly<Record<string, Json>>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name,
      typeof each === 'string' ? each : JSON.stringify(each),
    ]),
  );

/** Text of a field, without the `|` of a longer text and without the common indentation of its lines. */
function textOf([first = '', ...rest]: readonly string[]): string {
  const indents = rest.filter(line => line.trim() !== '').map(line => /^\s*/.exec(line)?.[0].length ?? 0);
  const common = Math.min(...indents, Number.MAX_SAFE_INTEGER);
  const start = /^[|>][+-]?\s*$/.test(first) ? [] : [first];
  return [...start, ...rest.map(line => line.slice(common))].join('\n').trim();
}

/** Shows the start of a text in a sentence. */
export function shown(text: string): string {
  const line = text.trim().replace(/\s+/g, ' ');
  if (line === '') return 'nothing';
  return line.length > 60 ? `\`${line.slice(0, 60)}…\`` : `\`${line}\``;
}
