import { createHash } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import { isJsonObject, type Json, type JsonObject } from '../../core/json.ts';
import { invalid, type PlacedLine } from '../../effects/recording/json-lines.ts';

/** What is shorter stays where it is. */
const shortestLong = 240;

/** So much of a text that is elsewhere stays, so that a reader sees what it is. */
const shownCharacters = 40;

/** The only field of a map that stands for a text which is elsewhere: its number, and how it begins. */
const elsewhere = 'long';

/** The only field of the line that says where they are. */
const whereKey = 'long_texts';

/** What people review: what was asked, what the agent said, and how it ended. */
const alwaysHere = ['format', 'text', 'result', 'interrupted'];

/** A file of JSON lines, and what of it is kept in a blob. */
export interface TextsApart {
  readonly text: string;
  readonly blob?: { readonly sha: string; readonly content: Uint8Array } | undefined;
}

/**
 * Takes thoughts, what tools were given, and what they and scripts printed out of the lines of a recording, if they are
 * long. They are most of a recording and the least that people look at, and become a third when they are compressed.
 */
export function setTextsApart(file: string): TextsApart {
  const texts = new Map<string, number>();
  const lines = file.split('\n').map(line => {
    if (line.length < shortestLong && !line.includes(`{"${elsewhere}":`)) return line;
    const value = JSON.parse(line) as JsonObject;
    return isAlwaysHere(value) ? line : JSON.stringify(apart(value, texts));
  });
  if (texts.size === 0) return { text: file };
  const content = gzipSync([...texts.keys()].map(text => `${JSON.stringify(text)}\n`).join(''), { level: 9 });
  const sha = createHash('sha256').update(content).digest('hex');
  const [header = '', ...rest] = lines;
  return { text: [header, JSON.stringify({ [whereKey]: sha }), ...rest].join('\n'), blob: { sha, content } };
}

const isAlwaysHere = (line: JsonObject): boolean => alwaysHere.some(key => Object.hasOwn(line, key));

function apart(value: Json, texts: Map<string, number>): Json {
  if (typeof value === 'string') {
    if (value.length < shortestLong) return value;
    const number = texts.get(value) ?? texts.size;
    texts.set(value, number);
    return { [elsewhere]: `${number} ${value.slice(0, shownCharacters)}…` };
  }
  if (Array.isArray(value)) return value.map(item => apart(item, texts));
  if (!isJsonObject(value)) return value;
  if (isElsewhere(value)) return { [elsewhere]: [value] };
  return mapped(value, item => apart(item, texts));
}

const isElsewhere = (value: JsonObject): boolean =>
  Object.hasOwn(value, elsewhere) && Object.keys(value).length === 1;

const mapped = (value: JsonObject, change: (item: Json) => Json): JsonObject =>
  Object.fromEntries(Object.entries(value).map(([key, item]) => [key, change(item as Json)]));

/** The bytes of a blob of the case, by its sha256. Throws if it is not there. */
export type ReadBlob = (sha: string) => Uint8Array;

/** Puts the texts back. Throws TAPE_INVALID if there are none, or not those. */
export function putTextsBack(
  lines: readonly PlacedLine[],
  readBlob: ReadBlob | undefined,
): readonly PlacedLine[] {
  const [header, where, ...rest] = lines;
  if (!header || !where || !Object.hasOwn(where.value, whereKey)) return lines;
  const texts = textsIn(String(where.value[whereKey]), where, readBlob);
  return [
    header,
    ...rest.map(line =>
      isAlwaysHere(line.value)
        ? line
        : { ...line, value: restored(line.value, { line, texts }) as JsonObject },
    ),
  ];
}

function textsIn(sha: string, line: PlacedLine, readBlob: ReadBlob | undefined): readonly string[] {
  try {
    if (!readBlob) throw new Error('nobody knows where blobs are');
    const lines = gunzipSync(readBlob(sha)).toString('utf8').trimEnd().split('\n');
    return lines.map(text => String(JSON.parse(text)));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw invalid(line, `has long texts in blobs/${sha}, which cannot be read: ${why}`);
  }
}

function restored(
  value: Json,
  known: { readonly line: PlacedLine; readonly texts: readonly string[] },
): Json {
  if (Array.isArray(value)) return value.map(item => restored(item, known));
  if (!isJsonObject(value)) return value;
  if (!isElsewhere(value)) return mapped(value, item => restored(item, known));
  const target = value[elsewhere];
  if (Array.isArray(target)) return (target as readonly Json[])[0] ?? null;
  const text = known.texts[Number.parseInt(String(target), 10)];
  if (text === undefined)
    throw invalid(known.line, `has a long text that is not in the blob: ${String(target)}`);
  return text;
}
