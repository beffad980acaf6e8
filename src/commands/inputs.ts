import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { RepriseError } from '../core/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../core/json.ts';
import type { Definition } from '../project/definitions.ts';
import type { CommandIo } from '../project/host.ts';
import type { InputField } from '../workflow/model.ts';

export interface InputOptions {
  /** `key=value` each. */
  readonly input?: readonly string[] | undefined;
  readonly inputJson?: string | undefined;
  /** `-` is standard input. */
  readonly inputFile?: string | undefined;
}

/**
 * The input that a command line describes: the file first, then the JSON, then single values. Whether it fits is for
 * the workflow to say. Throws USAGE if it cannot be read, INPUT_INVALID for text where JSON is wanted.
 */
export async function readInput(
  options: InputOptions,
  { definition, io }: { readonly definition: Definition; readonly io: CommandIo },
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
    return readFileSync(resolve(io.cwd, file), 'utf8');
  } catch (cause) {
    throw new RepriseError('USAGE', `--input-file ${file} cannot be read`, {
      cause,
      hint: 'check the path; it counts from the current folder',
    });
  }
}

/** All of it, as text. */
export async function readAll(stdin: CommandIo['stdin']): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stdin) chunks.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
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
  throw new RepriseError('USAGE', `--input needs a name and a value, not ${JSON.stringify(pair)}`, {
    hint: 'write --input name=value',
  });
}

function withTexts(
  base: JsonObject,
  texts: ReadonlyMap<string, string>,
  { model, kind }: Definition,
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

/** A text that does not read as the type stays one, so that the workflow's own message names it. */
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

/** Every text would be accepted for it, so one that was meant as JSON must not pass. Throws INPUT_INVALID. */
function requireJson(name: string, text: string): Json {
  const value = readJson(text);
  if (value !== undefined) return value;
  throw new RepriseError('INPUT_INVALID', `input \`${name}\` must be JSON, not ${JSON.stringify(text)}`, {
    hint: `text needs quotes of its own: --input ${name}='"text"'`,
  });
}

const mostAmbiguous = 6;

/** A schema in code does not say which texts are JSON: as few as possible are read so, until it accepts. */
function firstAccepted(
  read: JsonObject,
  ambiguous: readonly [string, Json][],
  parse: (raw: unknown) => unknown,
): JsonObject {
  const several = ambiguous.slice(0, mostAmbiguous);
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

/** `undefined` if it is not JSON. */
function readJson(text: string): Json | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What it means as JSON, or else the text itself. */
export function jsonOrText(text: string): Json {
  const value = readJson(text);
  return value === undefined ? text : value;
}
