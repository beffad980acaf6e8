import { createHash } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import { isJsonObject, type Json, type JsonObject } from '../../core/index.ts';
import { invalid, type PlacedLine } from '../../effects/recording/index.ts';

/** Minimum length of a text that is moved to a blob. */
const minMovedLength = 240;

/** Number of leading characters that stay in place as a preview. */
const shownCharacters = 40;

/** Only key of an object that replaces a moved text. Its value is the number of the text and a preview. */
const movedKey = 'long';

/** Only key of the line that names the blob. */
const blobKey = 'long_texts';

/** Lines that stay complete because people review them: the prompt, the messages of the agent and the result. */
const reviewedKeys = ['format', 'text', 'result', 'interrupted'];

/** A file of JSON lines, and the blob with its long texts. */
export interface TextsApart {
  readonly text: string;
  readonly blob?: { readonly sha: string; readonly content: Uint8Array } | undefined;
}

/**
 * Moves long thoughts, tool inputs and outputs of tools and scripts from a recording to a blob. They make up most of a
 * recording, are rarely read, and compress to a third.
 */
export function setTextsApart(file: string): TextsApart {
  const texts = new Map<string, number>();
  const lines = file.split('\n').map(line => {
    if (line.length < minMovedLength && !line.includes(`{"${movedKey}":`)) return line;
    const value = JSON.parse(line) as JsonObject;
    return isReviewed(value) ? line : JSON.stringify(moved(value, texts));
  });
  if (texts.size === 0) return { text: file };
  const content = gzipSync([...texts.keys()].map(text => `${JSON.stringify(text)}\n`).join(''), { level: 9 });
  const sha = createHash('sha256').update(content).digest('hex');
  const [header = '', ...rest] = lines;
  return { text: [header, JSON.stringify({ [blobKey]: sha }), ...rest].join('\n'), blob: { sha, content } };
}

const isReviewed = (line: JsonObject): boolean => reviewedKeys.some(key => Object.hasOwn(line, key));

function moved(value: Json, texts: Map<string, number>): Json {
  if (typeof value === 'string') {
    if (value.length < minMovedLength) return value;
    const number = texts.get(value) ?? texts.size;
    texts.set(value, number);
    return { [movedKey]: `${number} ${value.slice(0, shownCharacters)}…` };
  }
  if (Array.isArray(value)) return value.map(item => moved(item, texts));
  if (!isJsonObject(value)) return value;
  if (isMoved(value)) return { [movedKey]: [value] };
  return mapped(value, item => moved(item, texts));
}

const isMoved = (value: JsonObject): boolean =>
  Object.hasOwn(value, movedKey) && Object.keys(value).length === 1;

const mapped = (value: JsonObject, change: (item: Json) => Json): JsonObject =>
  Object.fromEntries(Object.entries(value).map(([key, item]) => [key, change(item as Json)]));

/** Returns the bytes of a blob of the case by its sha256. Throws if the blob is missing. */
export type ReadBlob = (sha: string) => Uint8Array;

/** Restores the moved texts. Throws TAPE_INVALID if the blob or a text in it is missing. */
export function putTextsBack(
  lines: readonly PlacedLine[],
  readBlob: ReadBlob | undefined,
): readonly PlacedLine[] {
  const [header, where, ...rest] = lines;
  if (!header || !where || !Object.hasOwn(where.value, blobKey)) return lines;
  const sha = String(where.value[blobKey]);
  if (!/^[0-9a-f]{64}$/.test(sha)) throw invalid(where, `\`${blobKey}\` must be a sha256`);
  const texts = textsIn(sha, where, readBlob);
  return [
    header,
    ...rest.map(line =>
      isReviewed(line.value) ? line : { ...line, value: restored(line.value, { line, texts }) as JsonObject },
    ),
  ];
}

function textsIn(sha: string, line: PlacedLine, readBlob: ReadBlob | undefined): readonly string[] {
  try {
    if (!readBlob) throw new Error('the recording is not part of a case');
    const lines = gunzipSync(readBlob(sha)).toString('utf8').trimEnd().split('\n');
    return lines.map(text => String(JSON.parse(text)));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw invalid(line, `refers to blobs/${sha}, which cannot be read: ${why}`);
  }
}

function restored(
  value: Json,
  known: { readonly line: PlacedLine; readonly texts: readonly string[] },
): Json {
  if (Array.isArray(value)) return value.map(item => restored(item, known));
  if (!isJsonObject(value)) return value;
  if (!isMoved(value)) return mapped(value, item => restored(item, known));
  const target = value[movedKey];
  if (Array.isArray(target)) return (target as readonly Json[])[0] ?? null;
  const text = known.texts[Number.parseInt(String(target), 10)];
  if (text === undefined)
    throw invalid(known.line, `refers to a text that is not in the blob: ${String(target)}`);
  return text;
}
