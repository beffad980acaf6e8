import { z } from 'zod';
import type { ScriptStep } from '../../agents/scripted/script.ts';
import { isJsonObject, type JsonObject } from '../../core/json.ts';
import { fitting, invalid, type PlacedLine } from '../../effects/recording/json-lines.ts';
import type { WrittenSession } from './session-file.ts';

const path = z.string().min(1);
const editSchema = z.union(
  [
    z.strictObject({ path, content: z.string() }),
    z.strictObject({ path, replace: z.string().min(1), with: z.string() }),
  ],
  'an edit has `path` and `content`, or `path`, `replace` and `with`',
);
const words = z.string();
const something = z.string().min(1);

/** What a person may write, one of these a line. */
const readers: Readonly<Record<string, (value: unknown, place: PlacedLine) => ScriptStep>> = {
  text: (value, place) => ({ say: fitting(words, value, place) }),
  thought: (value, place) => ({ think: fitting(words, value, place) }),
  delete: (value, place) => ({ delete: fitting(path, value, place) }),
  commit: (value, place) => ({ commit: fitting(something, value, place) }),
  fail: (value, place) => ({ fail: fitting(something, value, place) }),
  edit: (value, place) => {
    const edit = fitting(editSchema, value, place);
    return 'content' in edit
      ? { write: edit }
      : { replace: { path: edit.path, from: edit.replace, to: edit.with } };
  },
  result: (value, place) => {
    if (typeof value === 'string') return { result: { text: value } };
    if (isJsonObject(value)) return { result: { output: value as Mutable } };
    throw invalid(place, '`result` is a text, or an object as the answer');
  },
};

type Mutable = NonNullable<Extract<ScriptStep, { result: unknown }>['result']['output']>;

const known = Object.keys(readers);

/** A session written by hand: each line is one thing that the agent says or does. Throws TAPE_INVALID. */
export function parseWritten(file: string, lines: readonly PlacedLine[]): WrittenSession {
  const script = lines.map(stepOf);
  const end = lines.findIndex(({ value }) => 'result' in value || 'fail' in value);
  const beyond = end < 0 ? undefined : lines[end + 1];
  if (beyond) throw invalid(beyond, 'comes after the end of the session', 'let the result be the last line');
  return { kind: 'written', file, script };
}

function stepOf(place: PlacedLine): ScriptStep {
  const [key, ...more] = Object.keys(place.value);
  const read = key === undefined || !Object.hasOwn(readers, key) ? undefined : readers[key];
  if (!read || key === undefined || more.length > 0) {
    throw invalid(place, whyUnknown(place.value), `write one of these a line: ${known.join(', ')}`);
  }
  return read(place.value[key], place);
}

function whyUnknown(value: JsonObject): string {
  const keys = Object.keys(value);
  if (keys.includes('run')) return 'runs something, which a session written by hand cannot do';
  return keys.length === 1 ? `has an unknown key \`${keys[0]}\`` : 'must have exactly one key';
}
