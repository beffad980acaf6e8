import { parse, TomlError } from 'smol-toml';
import type { Position } from '../../core/index.ts';
import type { ParseFault } from '../../workflow/expression/index.ts';
import { LineIndex, type Path, type Range } from '../../workflow/yaml/source/index.ts';

/** Position of a value in a TOML file, and of the values inside it. */
interface TomlNode {
  /** Last part of the key; for a list item, the value itself. */
  key: Range;
  /** Text of the value; for a table with a header, the header. */
  value: Range;
  readonly fields: Map<string, TomlNode>;
  readonly items: TomlNode[];
  /** Whether only a longer key has named this table so far: its own header may still follow. */
  isImplied: boolean;
}

interface KeyPart {
  readonly name: string;
  readonly range: Range;
}

/** Maps paths in a TOML file to positions in its text. */
interface TomlPositions {
  /** Returns the range of the key that the path ends with, or of the nearest existing key above it. */
  keyAt(path: Path): Range;
  valueAt(path: Path): Range;
}

/** Finds positions in text that the TOML parser has accepted; it reports no errors. */
export function findPositions(text: string): TomlPositions {
  const root = new PositionFinder(text).find();
  return {
    keyAt: path => lookUp(root, path).key,
    valueAt: path => lookUp(root, path).value,
  };
}

function lookUp(root: TomlNode, path: Path): TomlNode {
  let node = root;
  for (const part of path) {
    const inner = typeof part === 'number' ? node.items[part] : node.fields.get(part);
    if (!inner) break;
    node = inner;
  }
  return node;
}

const newTomlNode = (key: Range, value: Range, isImplied = false): TomlNode => ({
  key,
  value,
  fields: new Map(),
  items: [],
  isImplied,
});

class PositionFinder {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    if (text.startsWith('\uFEFF')) this.#at = 1;
  }

  find(): TomlNode {
    const start = { start: this.#at, end: this.#at + 1 };
    const root = newTomlNode(start, start);
    let table = root;
    for (this.#skipBlanks(); this.#at < this.#text.length; this.#skipBlanks()) {
      if (this.#text[this.#at] === '[') table = this.#header(root);
      else this.#assignment(table);
    }
    return root;
  }

  /** Reads `[a.b]` or `[[a.b]]`, and returns the table that the lines below it belong to. */
  #header(root: TomlNode): TomlNode {
    const start = this.#at;
    const isList = this.#text.startsWith('[[', start);
    this.#at += isList ? 2 : 1;
    const parts = this.#key(']');
    this.#at += isList ? 2 : 1;
    const whole = { start, end: this.#at };
    const { owner, last } = descend(root, parts);
    const known = owner.fields.get(last.name);
    if (isList) {
      const list = known ?? newTomlNode(last.range, whole);
      owner.fields.set(last.name, list);
      const item = newTomlNode(last.range, whole);
      list.items.push(item);
      return item;
    }
    const table = known ?? newTomlNode(last.range, whole);
    if (table.isImplied) Object.assign(table, { key: last.range, value: whole, isImplied: false });
    owner.fields.set(last.name, table);
    return table;
  }

  #assignment(table: TomlNode): void {
    const parts = this.#key('=');
    this.#at++;
    this.#skipBlanks();
    const { owner, last } = descend(table, parts);
    owner.fields.set(last.name, this.#value(last.range));
  }

  /** Reads a key and stops at `end`. */
  #key(end: '=' | ']'): readonly KeyPart[] {
    const parts: KeyPart[] = [];
    while (this.#at < this.#text.length && this.#text[this.#at] !== end) {
      const start = this.#at;
      const first = this.#text[start];
      if (first === '"' || first === "'") this.#skipString();
      else this.#skipWhile(/[\w-]/);
      const range = { start, end: this.#at };
      if (range.end > start) parts.push({ name: keyName(this.#text.slice(start, range.end)), range });
      else this.#at++;
    }
    return parts;
  }

  /** `key` is `undefined` for a list item. */
  #value(key: Range | undefined): TomlNode {
    const start = this.#at;
    const node = newTomlNode({ start, end: start }, { start, end: start });
    const first = this.#text[start];
    if (first === '[') this.#inside(']', () => node.items.push(this.#value(undefined)));
    else if (first === '{') this.#inside('}', () => this.#assignment(node));
    else if (first === '"' || first === "'") this.#skipString();
    else this.#skipPlainValue();
    node.value = { start, end: this.#at };
    node.key = key ?? node.value;
    return node;
  }

  #inside(end: ']' | '}', readItem: () => void): void {
    this.#at++;
    for (this.#skipBlanks(); this.#at < this.#text.length; this.#skipBlanks()) {
      const next = this.#text[this.#at];
      if (next === end) break;
      if (next === ',') this.#at++;
      else readItem();
    }
    this.#at++;
  }

  /** Skips a number, date or boolean. A date may have a space before its time. */
  #skipPlainValue(): void {
    this.#skipWhile(/[^\s,\]}#]/);
    if (/^ \d\d:/.test(this.#text.slice(this.#at, this.#at + 4))) {
      this.#at++;
      this.#skipWhile(/[^\s,\]}#]/);
    }
  }

  #skipString(): void {
    const quote = this.#text[this.#at] ?? '';
    const isLong = this.#text.startsWith(quote.repeat(3), this.#at);
    const closing = isLong ? quote.repeat(3) : quote;
    this.#at += closing.length;
    while (this.#at < this.#text.length && !this.#text.startsWith(closing, this.#at))
      this.#at += quote === '"' && this.#text[this.#at] === '\\' ? 2 : 1;
    this.#at += closing.length;
    // The content of a multi-line string may end with one or two quotes.
    for (let more = 0; isLong && more < 2 && this.#text[this.#at] === quote; more++) this.#at++;
  }

  /** Skips white space, line ends and comments. */
  #skipBlanks(): void {
    this.#skipWhile(/\s/);
    while (this.#text[this.#at] === '#') {
      const end = this.#text.indexOf('\n', this.#at);
      this.#at = end < 0 ? this.#text.length : end;
      this.#skipWhile(/\s/);
    }
  }

  #skipWhile(allowed: RegExp): void {
    while (this.#at < this.#text.length && allowed.test(this.#text[this.#at] ?? '')) this.#at++;
  }
}

/** Returns the table that contains the last part of a key. Within a list of tables, that is the newest table. */
function descend(from: TomlNode, parts: readonly KeyPart[]): { owner: TomlNode; last: KeyPart } {
  const last = parts.at(-1) ?? { name: '', range: from.key };
  let owner = from;
  for (const { name, range } of parts.slice(0, -1)) {
    const inner = owner.fields.get(name) ?? newTomlNode(range, range, true);
    owner.fields.set(name, inner);
    owner = inner.items.at(-1) ?? inner;
  }
  return { owner, last };
}

function keyName(written: string): string {
  if (!/^["']/.test(written)) return written;
  return written.includes('\\') ? String(parse(`key = ${written}`)['key']) : written.slice(1, -1);
}

/** A parsed TOML file that can map a path back to its position in the text. */
export class TomlSource {
  readonly displayFile: string;
  readonly text: string;
  /** `undefined` if the text is not valid TOML. */
  readonly value: Readonly<Record<string, unknown>> | undefined;
  /** Syntax error, if any. The parser stops at the first one. */
  readonly fault: ParseFault | undefined;
  #lines: LineIndex | undefined;
  #positions: TomlPositions | undefined;

  constructor({ displayFile, text }: { readonly displayFile: string; readonly text: string }) {
    this.displayFile = displayFile;
    this.text = text;
    try {
      this.value = parse(text);
    } catch (error) {
      if (!(error instanceof TomlError)) throw error;
      this.fault = faultOf(error, text);
    }
  }

  get lines(): LineIndex {
    this.#lines ??= new LineIndex(this.text);
    return this.#lines;
  }

  positionOf(offset: number): Position {
    return { file: this.displayFile, ...this.lines.at(offset) };
  }

  keyRange(path: Path): Range {
    return this.#findPositions().keyAt(path);
  }

  range(path: Path): Range {
    return this.#findPositions().valueAt(path);
  }

  #findPositions(): TomlPositions {
    this.#positions ??= findPositions(this.text);
    return this.#positions;
  }
}

function faultOf({ message, line, column }: TomlError, text: string): ParseFault {
  const [reason = ''] = message.replace(/^Invalid TOML document: /, '').split('\n');
  const start = lineStart(text, line) + column - 1;
  return { start, end: start + 1, message: `invalid TOML: ${reason}`, hint: hints.get(reason) };
}

function lineStart(text: string, line: number): number {
  let start = 0;
  for (let passed = 1; passed < line; passed++) start = text.indexOf('\n', start) + 1;
  return start;
}

const redefined = 'a key or [table] can be defined only once; merge the two';

const unclosed = 'close the quote; for a multi-line string use """ or \'\'\'';

const hints: ReadonlyMap<string, string> = new Map([
  ['trying to redefine an already defined table or value', redefined],
  ['trying to redefine an already defined value', redefined],
  ['invalid value', 'put strings in quotes'],
  ['unfinished string', unclosed],
  ['control characters are not allowed in strings', unclosed],
  ['expected comma or end of structure', 'close the list or inline table, or add the missing comma'],
  ['illegal character in key', 'put keys with characters other than letters, digits, - and _ in quotes'],
]);
