import { resolve } from 'node:path';
import { isJsonObject, type Json, type JsonObject, RepriseError } from '../core/index.ts';
import { FileRefusedError, fileLimits, readBoundedText, tooLarge } from '../effects/index.ts';
import type { CommandIo, LoadedDefinition } from '../project/index.ts';
import type { InputField } from '../workflow/index.ts';

export interface InputOptions {
  /** Single inputs, each as `name=value`. */
  readonly input?: readonly string[] | undefined;
  readonly inputJson?: string | undefined;
  /** Path of a JSON file; `-` reads standard input. */
  readonly inputFile?: string | undefined;
}

/**
 * Merges the inputs of a command line: single values override the JSON object, which overrides the file. The workflow
 * validates the result. Throws USAGE if an input cannot be read, INPUT_INVALID for text where JSON is expected.
 */
export async function readInput(
  options: InputOptions,
  { definition, io }: { readonly definition: LoadedDefinition; readonly io: CommandIo },
): Promise<JsonObject> {
  const { input = [], inputJson, inputFile } = options;
  const fromFile =
    inputFile === undefined ? {} : parseObject(await readText(inputFile, io), `--input-file ${inputFile}`);
  const fromJson = inputJson === undefined ? {} : parseObject(inputJson, '--input-json');
  const texts = new Map(input.map(splitPair));
  return withTexts({ ...fromFile, ...fromJson }, texts, definition);
}

async function readText(file: string, io: CommandIo): Promise<string> {
  if (file === '-') return readAll(io.stdin);
  try {
    return readBoundedText(resolve(io.cwd, file), { maxBytes: fileLimits.input, pipes: true });
  } catch (cause) {
    if (cause instanceof FileRefusedError) throw inputRefused(`--input-file ${file}`, cause);
    throw new RepriseError('USAGE', `--input-file ${file} cannot be read`, {
      cause,
      hint: 'check the path; it is relative to the current folder',
    });
  }
}

/** Creates the USAGE error for an input that is too large or not readable. */
export const inputRefused = (what: string, cause: FileRefusedError): RepriseError =>
  new RepriseError('USAGE', `${what} ${cause.message}`, {
    cause,
    hint: 'put large data into a file, and pass its path as the input',
  });

/** Reads a stream to its end as UTF-8. Throws USAGE if it is too large. */
export async function readAll(stdin: CommandIo['stdin']): Promise<string> {
  const chunks: Uint8Array[] = [];
  let total = 0;
  for await (const chunk of stdin) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    total += bytes.length;
    if (total > fileLimits.input) throw inputRefused('standard input', tooLarge(fileLimits.input));
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseObject(text: string, what: string): JsonObject {
  const value = readJson(text);
  if (value !== undefined && isJsonObject(value)) return value;
  throw new RepriseError('USAGE', `${what} must be a JSON object`, { hint: `for example {"issue": 7}` });
}

function splitPair(pair: string): [string, string] {
  const equals = pair.indexOf('=');
  if (equals > 0) return [pair.slice(0, equals), pair.slice(equals + 1)];
  throw new RepriseError('USAGE', `--input needs name=value, not ${JSON.stringify(pair)}`, {
    hint: 'write --input name=value',
  });
}

function withTexts(
  base: JsonObject,
  texts: ReadonlyMap<string, string>,
  { model, kind }: LoadedDefinition,
): JsonObject {
  const fields = new Map(model.input.fields.map(field => [field.name, field]));
  const read = new Map<string, Json>(Object.entries(base));
  const ambiguous: [string, Json][] = [];
  for (const [name, text] of texts) {
    const field = fields.get(name);
    const asJson = kind === 'module' && (!field || field.type === 'json') ? readJson(text) : undefined;
    if (asJson !== undefined && asJson !== text) ambiguous.push([name, asJson]);
    if (kind === 'yaml' && field?.type === 'json') read.set(name, requireJson(name, text));
    else read.set(name, field && asJson === undefined ? byType(field, text) : text);
  }
  return firstAccepted(Object.fromEntries(read), ambiguous, model.input.parse);
}

/** Converts text to the type of the field. Text that does not convert is kept, so that the error of the workflow shows it. */
function byType({ type }: InputField, text: string): Json {
  switch (type) {
    case 'string':
    case 'choice':
      return text;
    case 'number':
      return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text;
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : text;
    case 'json':
      return jsonOrText(text);
  }
}

/** Parses JSON. A field of type `json` would also accept plain text, so malformed JSON throws INPUT_INVALID. */
function requireJson(name: string, text: string): Json {
  const value = readJson(text);
  if (value !== undefined) return value;
  throw new RepriseError('INPUT_INVALID', `input \`${name}\` must be JSON, not ${JSON.stringify(text)}`, {
    hint: `quote text as JSON: --input ${name}='"text"'`,
  });
}

const maxAmbiguous = 6;

/**
 * A schema in code does not declare which inputs are JSON. Tries every combination, with as few inputs as possible parsed
 * as JSON, and returns the first that the schema accepts.
 */
function firstAccepted(
  read: JsonObject,
  ambiguous: readonly [string, Json][],
  parse: (raw: unknown) => unknown,
): JsonObject {
  const several = ambiguous.slice(0, maxAmbiguous);
  const masks = Array.from({ length: 2 ** several.length }, (_, mask) => mask).sort(
    (a, b) => bits(a) - bits(b) || a - b,
  );
  const candidates = masks.map(mask => ({
    ...read,
    ...Object.fromEntries(several.filter((_, index) => mask & (1 << index))),
  }));
  return candidates.length === 1 ? read : (candidates.find(candidate => accepts(parse, candidate)) ?? read);
}

const bits = (mask: number): number => mask.toString(2).replaceAll('0', '').length;

function accepts(parse: (raw: unknown) => unknown, candidate: JsonObject): boolean {
  try {
    parse(candidate);
    return true;
  } catch {
    return false;
  }
}

/** Parses JSON; `undefined` if the text is not valid JSON. */
function readJson(text: string): Json | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Parses the text as JSON, or returns it unchanged if it is not valid JSON. */
export function jsonOrText(text: string): Json {
  const value = readJson(text);
  return value === undefined ? text : value;
}
