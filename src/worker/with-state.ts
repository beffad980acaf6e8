import { isMap, isScalar, type Pair, parseDocument, type YAMLMap } from 'yaml';
import { splitFrontMatter } from '../agents/definitions.ts';
import { canonicalJson, isJsonObject, type Json } from '../core/json.ts';
import { isTooDeep, keyText, YamlSource } from '../workflow/yaml/source/yaml-source.ts';
import type { TaskState } from './task.ts';

/**
 * The text of a task with another state in its front matter, and otherwise the same, byte for byte. `undefined` if the
 * front matter is such that this cannot be done: not closed, not YAML, not a map.
 */
export function withState(text: string, state: TaskState): string | undefined {
  const { yaml, endsAt, shift } = splitFrontMatter(text);
  if (yaml === undefined) return withFrontMatter(text, state);
  if (endsAt === undefined || isTooDeep(yaml)) return undefined;
  const document = parseDocument(yaml, { keepSourceTokens: true, logLevel: 'silent' });
  if (document.errors.length > 0) return undefined;
  const edit = editOf(document.contents, { state, yaml });
  const edited =
    edit === 'append'
      ? insert(text, endsAt, `${indentOf(document.contents, yaml)}state: ${state}${lineEndOf(text)}`)
      : edit && splice(text, { ...edit, start: edit.start + shift, end: edit.end + shift });
  return edited !== undefined && says(edited, state, text) ? edited : undefined;
}

function withFrontMatter(text: string, state: TaskState): string {
  const mark = text.startsWith('\uFEFF') ? 1 : 0;
  return insert(text, mark, ['---', `state: ${state}`, '---', '', ''].join(lineEndOf(text)));
}

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

const splice = (text: string, edit: Edit): string =>
  text.slice(0, edit.start) + edit.text + text.slice(edit.end);
const insert = (text: string, at: number, added: string): string =>
  splice(text, { start: at, end: at, text: added });
const lineEndOf = (text: string): string => (/\r?\n/.exec(text)?.[0] === '\r\n' ? '\r\n' : '\n');

interface Wanted {
  readonly state: TaskState;
  readonly yaml: string;
}

function editOf(root: unknown, wanted: Wanted): Edit | 'append' | undefined {
  if (root === null || (isScalar(root) && root.value === null)) return 'append';
  if (!isMap(root)) return undefined;
  const pair = root.items.find(({ key }) => keyText(key) === 'state');
  if (pair) return editOfPair(pair, wanted);
  if (!root.flow) return 'append';
  const start = (root.range?.[0] ?? 0) + 1;
  return { start, end: start, text: ` state: ${wanted.state}${root.items.length > 0 ? ',' : ''}` };
}

function editOfPair({ key, value, srcToken }: Pair, { state, yaml }: Wanted): Edit | undefined {
  const { start, end } = rangeOf(value);
  // A block scalar takes the end of its last line with it.
  const lineEnd = /(\r?\n)?$/.exec(yaml.slice(start, end))?.[0] ?? '';
  if (end > start) return { start, end, text: `${state}${lineEnd}` };
  const colon = srcToken?.sep?.find(({ type }) => type === 'map-value-ind');
  if (colon) return { start: colon.offset + 1, end: colon.offset + 1, text: ` ${state}` };
  const { end: at } = rangeOf(key);
  return { start: at, end: at, text: `: ${state}` };
}

function rangeOf(node: unknown): { readonly start: number; readonly end: number } {
  const { range } = (node ?? {}) as { readonly range?: readonly number[] | null };
  return { start: range?.[0] ?? 0, end: range?.[1] ?? 0 };
}

/** All keys of a map stand in the same column, which is not always the first. */
function indentOf(root: unknown, yaml: string): string {
  const start = isMap(root) ? ((root as YAMLMap).range?.[0] ?? 0) : 0;
  return yaml.slice(yaml.lastIndexOf('\n', start - 1) + 1, start);
}

/** Anchors, tags and ends of documents are rare here, and have more ways to go wrong than are worth a rule. */
function says(edited: string, state: TaskState, original: string): boolean {
  const before = fieldsOf(original);
  const after = fieldsOf(edited);
  return (
    before !== undefined &&
    after !== undefined &&
    canonicalJson(after) === canonicalJson({ ...before, state })
  );
}

function fieldsOf(text: string): Readonly<Record<string, Json>> | undefined {
  const { yaml, endsAt } = splitFrontMatter(text);
  if (endsAt === undefined) return undefined;
  const { value, isReadable } = new YamlSource({ file: '', text: yaml ?? '' });
  return isReadable && isJsonObject(value ?? {})
    ? ((value ?? {}) as Readonly<Record<string, Json>>)
    : undefined;
}
