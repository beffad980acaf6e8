import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type ErrorData, type Json, RepriseError, toErrorData, toJson } from '../core/index.ts';

type ParsedOutput =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly error: ErrorData };

const maxOutputBytes = 10 * 1024 * 1024;

const forms = 'write lines of key=value, blocks of key<<EOF ... EOF, or one JSON object or array';

/**
 * Parses the content of `$REPRISE_OUTPUT`: JSON if it starts with `{` or `[`, otherwise lines of `key=value` and blocks
 * of `key<<EOF` ... `EOF`. Their values are strings, and the last value of a key wins. An empty file is `{}`.
 * Returns OUTPUT_INVALID with the line for anything else; never throws.
 */
export function parseOutputFile(text: string): ParsedOutput {
  if (Buffer.byteLength(text) > maxOutputBytes) return tooLarge();
  const content = text.startsWith('\uFEFF') ? text.slice(1) : text;
  const first = content.trimStart()[0];
  return first === '{' || first === '[' ? parseJson(content) : parseLines(content);
}

/** Reads and parses the file. A file that the script removed counts as empty; never rejects. */
export async function readOutputFile(file: string): Promise<ParsedOutput> {
  const found = await stat(file).catch(() => undefined);
  if (!found) return parseOutputFile('');
  if (!found.isFile()) {
    return invalid('$REPRISE_OUTPUT is no longer a file', 'do not replace it; append to it');
  }
  if (found.size > maxOutputBytes) return tooLarge();
  try {
    return parseOutputFile(new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file)));
  } catch {
    return invalid(
      '$REPRISE_OUTPUT is not readable as UTF-8 text',
      'write UTF-8 text; encode binary data, for example with base64',
    );
  }
}

const tooLarge = (): ParsedOutput =>
  invalid(
    '$REPRISE_OUTPUT is larger than 10 MB',
    'write large results to another file and put its path into $REPRISE_OUTPUT',
  );

function parseJson(text: string): ParsedOutput {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    const before = text.slice(0, jsonErrorOffset(text)).split('\n');
    const place = `${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
    return invalid(
      `$REPRISE_OUTPUT:${place}: not valid JSON`,
      `${forms}; jq -n --arg writes JSON with the right quotes`,
    );
  }
  try {
    return { ok: true, value: toJson(parsed, '$REPRISE_OUTPUT') };
  } catch (error) {
    if (error instanceof RepriseError) return { ok: false, error: toErrorData(error) };
    return invalid('$REPRISE_OUTPUT is nested too deeply', 'write a flatter structure');
  }
}

function parseLines(text: string): ParsedOutput {
  const lines = text.split(/\r?\n/);
  const values = new Map<string, string>();
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] ?? '';
    if (line.trim() === '') continue;
    const { key, block, rest } = splitLine(line);
    if (key === '') {
      return invalid(`$REPRISE_OUTPUT:${index + 1}: not a line of key=value: ${excerpt(line)}`, forms);
    }
    if (!block) {
      values.set(key, rest);
      continue;
    }
    const end = rest.trim() === '' ? -1 : lines.indexOf(rest, index + 1);
    if (end === -1) return unterminated(index + 1, rest);
    values.set(key, lines.slice(index + 1, end).join('\n'));
    index = end;
  }
  return { ok: true, value: Object.fromEntries(values) };
}

/** Splits a line at the first `=` or `<<`. The key is empty if there is neither, or no text before it. */
function splitLine(line: string): { readonly key: string; readonly block: boolean; readonly rest: string } {
  const equals = line.indexOf('=');
  const arrows = line.indexOf('<<');
  const block = arrows !== -1 && (equals === -1 || arrows < equals);
  const at = block ? arrows : equals;
  return { key: line.slice(0, Math.max(at, 0)).trim(), block, rest: line.slice(at + (block ? 2 : 1)) };
}

function unterminated(line: number, delimiter: string): ParsedOutput {
  if (delimiter.trim() === '') {
    return invalid(`$REPRISE_OUTPUT:${line}: << needs a word that ends the block`, forms);
  }
  const hint = `end the block with a line that is exactly ${excerpt(delimiter)}`;
  return invalid(`$REPRISE_OUTPUT:${line}: the block is not closed before the end of the file`, hint);
}

const excerpt = (text: string): string => JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);

const invalid = (message: string, hint: string): ParsedOutput => ({
  ok: false,
  error: { code: 'OUTPUT_INVALID', message, hint },
});

/**
 * Offset of the first character that makes the text invalid JSON; the length of the text if it ends too early.
 */
export function jsonErrorOffset(text: string): number {
  const scanner = new JsonScanner(text);
  const open: ('[' | '{')[] = [];
  let expect: JsonExpectation = 'value';
  for (;;) {
    scanner.skipSpace();
    const next = step(scanner, open, expect);
    if (next === undefined) return scanner.offset;
    expect = next;
  }
}

type JsonExpectation = 'value' | 'value or ]' | 'key' | 'key or }' | 'colon' | 'comma or end' | 'nothing';

/** Reads one token. Returns `undefined` if it is not the expected one. */
function step(
  scanner: JsonScanner,
  open: ('[' | '{')[],
  expect: JsonExpectation,
): JsonExpectation | undefined {
  const afterValue = () => (open.length === 0 ? 'nothing' : 'comma or end');
  const close = () => {
    open.pop();
    return afterValue();
  };
  switch (expect) {
    case 'value or ]':
      return scanner.take(']') ? close() : step(scanner, open, 'value');
    case 'value': {
      if (scanner.take('[')) {
        open.push('[');
        return 'value or ]';
      }
      if (scanner.take('{')) {
        open.push('{');
        return 'key or }';
      }
      return scanner.takeString() || scanner.takeAtom() ? afterValue() : undefined;
    }
    case 'key or }':
      return scanner.take('}') ? close() : step(scanner, open, 'key');
    case 'key':
      return scanner.takeString() ? 'colon' : undefined;
    case 'colon':
      return scanner.take(':') ? 'value' : undefined;
    case 'comma or end': {
      const inObject = open.at(-1) === '{';
      if (scanner.take(',')) return inObject ? 'key' : 'value';
      return scanner.take(inObject ? '}' : ']') ? close() : undefined;
    }
    case 'nothing':
      return undefined;
  }
}

class JsonScanner {
  readonly #text: string;
  offset = 0;

  constructor(text: string) {
    this.#text = text;
  }

  skipSpace(): void {
    this.#takeMatch(/[ \t\r\n]*/y);
  }

  take(character: string): boolean {
    if (this.#text[this.offset] !== character) return false;
    this.offset++;
    return true;
  }

  takeAtom(): boolean {
    return this.#takeMatch(/true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y);
  }

  /** Leaves the offset at the invalid character. */
  takeString(): boolean {
    if (!this.take('"')) return false;
    for (; this.offset < this.#text.length; this.offset++) {
      const character = this.#text[this.offset] ?? '';
      if (this.take('"')) return true;
      if (character < ' ') return false;
      if (character !== '\\') continue;
      if (!this.#takeMatch(/\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y)) return false;
      this.offset--;
    }
    return false;
  }

  #takeMatch(pattern: RegExp): boolean {
    pattern.lastIndex = this.offset;
    const matches = pattern.test(this.#text);
    if (matches) this.offset = pattern.lastIndex;
    return matches;
  }
}

/** Readable log of an agent or a script. Write errors are ignored: a full disk must not stop the work. */
export interface Log {
  append(text: string): void;
  close(): void;
}

export type OpenLog = (file: string) => Log;

/** Opens a log file. The file and its folder are created at the first write. */
export const openLogFile: OpenLog = file => {
  let descriptor: number | undefined;
  return {
    append: text => {
      try {
        descriptor ??= opened(file);
        writeSync(descriptor, text);
      } catch {}
    },
    close: () => {
      if (descriptor !== undefined) closeSync(descriptor);
      descriptor = undefined;
    },
  };
};

function opened(file: string): number {
  mkdirSync(dirname(file), { recursive: true });
  return openSync(file, 'a');
}

/** Discards everything, for worlds that are executed thousands of times. */
export const noLog: OpenLog = () => ({ append: () => {}, close: () => {} });
