import { createRequire } from 'node:module';
import type { ErrorObject, Options } from 'ajv';
import type { Ajv2020 } from 'ajv/dist/2020.js';
import { isJsonObject, type Json, type JsonObject, RepriseError, toJson } from '../core/index.ts';
import { compilePattern, type Pattern, PatternError } from './pattern.ts';

type CompiledOutput =
  | { readonly kind: 'parser'; readonly parse: (output: unknown) => unknown }
  | SchemaRefusal;

interface SchemaRefusal {
  readonly kind: 'invalid';
  readonly reason: string;
  readonly hint?: string | undefined;
  /** Keys and indexes that lead to the offending part of the schema. */
  readonly path?: readonly (string | number)[] | undefined;
  /** Offending part of the pattern. */
  readonly within?: { readonly start: number; readonly end: number } | undefined;
}

interface CompileOptions {
  /**
   * Treatment of a pattern that cannot be matched in linear time. `skip` is for a schema that was derived from code,
   * which checks the value itself. Defaults to `refuse`.
   */
  readonly unsafePatterns?: 'refuse' | 'skip' | undefined;
}

/**
 * Compiles a JSON Schema (2020-12, or the dialect that `$schema` names) into a parser. The parser adds default values and
 * throws OUTPUT_INVALID. Text takes linear time to check, whatever the patterns are.
 */
export function compileOutputSchema(schema: JsonObject, options: CompileOptions = {}): CompiledOutput {
  const { unsafePatterns = 'refuse' } = options;
  const { $schema: dialect, ...rest } = schema;
  try {
    const ajv = validatorOf(dialect, unsafePatterns);
    if (ajv.validateSchema(rest) !== true) return malformed(ajv.errors?.[0], rest);
    const validate = ajv.compile<Json>(rest);
    ajv.removeSchema(rest);
    if ('$async' in validate) return { kind: 'invalid', reason: '`$async` is not supported' };
    return { kind: 'parser', parse: output => check(validate, output) };
  } catch (error) {
    return error instanceof PatternFault
      ? error.refusal(schema)
      : { kind: 'invalid', reason: reasonOf(error) };
  }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const malformed = (error: ErrorObject | undefined, schema: JsonObject): SchemaRefusal =>
  error
    ? { kind: 'invalid', reason: describeIssue(error, schema), path: keysOf(error) }
    : { kind: 'invalid', reason: 'the schema is malformed' };

type Validator = Pick<Ajv2020, 'compile' | 'errors' | 'removeSchema' | 'validateSchema'>;

/** Loading `ajv` takes 30 ms, and few definitions have a schema. `require` keeps loading a definition synchronous. */
const require = createRequire(import.meta.url);
const validators = new Map<string, Validator>();

/** Validators are kept, because each compiles the schema of all schemas first. */
function validatorOf(dialect: Json | undefined, unsafePatterns: 'refuse' | 'skip'): Validator {
  const version = versionOf(dialect);
  const name = `${version} ${unsafePatterns}`;
  const known = validators.get(name);
  if (known) return known;
  const made = makeValidator(version, patternMaker(unsafePatterns));
  validators.set(name, made);
  return made;
}

type SchemaVersion = 'draft-07' | '2019-09' | '2020-12';

function versionOf(dialect: Json | undefined): SchemaVersion {
  if (dialect === undefined) return '2020-12';
  const [version] = /draft-0[67]|2019-09|2020-12/.exec(String(dialect)) ?? [];
  if (version === undefined)
    throw new Error(
      `\`$schema\` must be draft-06, draft-07, 2019-09 or 2020-12, not ${JSON.stringify(dialect)}`,
    );
  return version === 'draft-06' ? 'draft-07' : (version as SchemaVersion);
}

/** Numbers such as 0.3 are a multiple of 0.1 within this number of decimal places. */
const multipleOfPrecision = 9;

function makeValidator(version: SchemaVersion, regExp: PatternMaker): Validator {
  const options: Options = {
    allErrors: true,
    strict: false,
    logger: false,
    verbose: true,
    useDefaults: true,
    ownProperties: true,
    addUsedSchema: false,
    multipleOfPrecision,
    code: { regExp },
  };
  const ajv = new (classOf(version))(options);
  const { default: addFormats } = require('ajv-formats') as typeof import('ajv-formats');
  addFormats.default(ajv);
  const url = addFormats.default.get('url') as RegExp;
  // The expression of this format takes quadratic time.
  ajv.addFormat('url', text => text.length <= longestUrl && url.test(text));
  return ajv;
}

const longestUrl = 8192;

function classOf(version: SchemaVersion) {
  switch (version) {
    case 'draft-07':
      return (require('ajv') as typeof import('ajv')).Ajv;
    case '2019-09':
      return (require('ajv/dist/2019.js') as typeof import('ajv/dist/2019.js')).Ajv2019;
    case '2020-12':
      return (require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js')).Ajv2020;
  }
}

type PatternMaker = NonNullable<NonNullable<Options['code']>['regExp']>;

/** A pattern that cannot be compiled, with its text. */
class PatternFault extends Error {
  readonly #pattern: string;
  readonly #fault: PatternError;

  constructor(pattern: string, fault: PatternError) {
    super(fault.message);
    this.#pattern = pattern;
    this.#fault = fault;
  }

  refusal(schema: JsonObject): SchemaRefusal {
    const { message, hint, start, end } = this.#fault;
    const within = start === undefined || end === undefined ? undefined : { start, end };
    const reason = `the pattern \`${this.#pattern}\` ${message}`;
    return { kind: 'invalid', reason, hint, within, path: pathOfPattern(schema, this.#pattern) };
  }
}

function patternMaker(unsafePatterns: 'refuse' | 'skip'): PatternMaker {
  const make = (pattern: string) => ({ ...patternOf(pattern, unsafePatterns), toString: () => pattern });
  // `code` is only used to print a validator.
  return Object.assign(make, { code: 'linear' }) as unknown as PatternMaker;
}

const anyText: Pattern = { test: () => true };

function patternOf(pattern: string, unsafePatterns: 'refuse' | 'skip'): Pattern {
  try {
    return compilePattern(pattern);
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    if (unsafePatterns === 'skip') return anyText;
    throw new PatternFault(pattern, error);
  }
}

/** Finds a `pattern`, or a key of `patternProperties`, with the given text. */
function pathOfPattern(schema: Json, pattern: string): readonly (string | number)[] | undefined {
  if (!Array.isArray(schema) && !isJsonObject(schema)) return undefined;
  for (const [key, value] of Object.entries(schema)) {
    const step = Array.isArray(schema) ? Number(key) : key;
    if (key === 'pattern' && value === pattern) return [step];
    if (key === 'patternProperties' && isJsonObject(value) && Object.hasOwn(value, pattern))
      return [step, pattern];
    const inner = pathOfPattern(value, pattern);
    if (inner) return [step, ...inner];
  }
  return undefined;
}

const shownIssues = 5;

interface Validate {
  (output: Json): unknown;
  errors?: readonly ErrorObject[] | null;
}

function check(validate: Validate, output: unknown): Json {
  // A copy, because the validator adds default values to it.
  const copy = toJson(output);
  if (validate(copy) === true) return copy;
  const issues = [...new Set((validate.errors ?? []).map(error => describeIssue(error, copy)))];
  const more = issues.length - shownIssues;
  const shown = [...issues.slice(0, shownIssues), ...(more > 0 ? [`and ${more} more`] : [])];
  throw new RepriseError('OUTPUT_INVALID', `the output does not match its schema\n${shown.join('\n')}`);
}

/** One line: path of the value, and what the schema expects there. */
function describeIssue(error: ErrorObject, output: Json): string {
  const { keyword, params, data, message = 'is invalid' } = error;
  const at = (...more: readonly string[]) => pathIn(output, [...keysOf(error), ...more]);
  switch (keyword) {
    case 'type':
      return `${at()}: must be ${[params['type']].flat().map(withArticle).join(' or ')}, not ${typeOf(data)}`;
    case 'required':
      return `${at(params['missingProperty'])}: is required`;
    case 'additionalProperties':
      return `${at(params['additionalProperty'])}: is not allowed`;
    case 'unevaluatedProperties':
      return `${at(params['unevaluatedProperty'])}: is not allowed`;
    case 'enum':
      return `${at()}: must be one of ${params['allowedValues'].map(excerpt).join(', ')}, not ${excerpt(data)}`;
    case 'const':
      return `${at()}: must be ${excerpt(params['allowedValue'])}, not ${excerpt(data)}`;
    case 'false schema':
      return `${at()}: is not allowed`;
    default:
      return `${at()}: ${message.replace('NOT', 'not')}`;
  }
}

const keysOf = ({ instancePath }: ErrorObject): readonly string[] =>
  instancePath
    .split('/')
    .slice(1)
    .map(key => key.replaceAll('~1', '/').replaceAll('~0', '~'));

/** The path as in JavaScript: `output.files[0].name`. */
function pathIn(output: Json, keys: readonly string[]): string {
  let path = 'output';
  let value: Json | undefined = output;
  for (const key of keys) {
    path += Array.isArray(value) ? `[${key}]` : `.${key}`;
    value = (value as { readonly [key: string]: Json } | undefined)?.[key];
  }
  return path;
}

const withArticle = (type: string): string =>
  type === 'null' ? type : `${/^[aio]/.test(type) ? 'an' : 'a'} ${type}`;

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return withArticle(Array.isArray(value) ? 'array' : typeof value);
}

function excerpt(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
