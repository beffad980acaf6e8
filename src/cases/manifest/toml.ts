import { parse, TomlError } from 'smol-toml';
import type { Position } from '../../core/errors.ts';
import type { Fault } from '../../workflow/expression/parse.ts';
import { LineIndex } from '../../workflow/yaml/source/problem-list.ts';
import type { Path, Range } from '../../workflow/yaml/source/yaml-source.ts';

/** Where a value of a TOML file stands. */
interface Place {
  /** The last part of its key; for what is in a list, the value itself. */
  key: Range;
  /** A value as it is written; for a table with a header, the header. */
  value: Range;
  readonly fields: Map<string, Place>;
  readonly items: Place[];
  /** Made by a longer key, so that a header of its own is still to come. */
  isImplied: boolean;
}

interface KeyPart {
  readonly name: string;
  readonly range: Range;
}

/** The way from a path in a TOML file to its place in the text. */
interface Places {
  /** Of the key that the path ends with, or of the nearest one around it that is known. */
  keyAt(path: Path): Range;
  valueAt(path: Path): Range;
}

/** For text that the TOML parser accepts: nothing is checked again. */
export function findPlaces(text: string): Places {
  const root = new PlaceFinder(text).find();
  return {
    keyAt: path => lookUp(root, path).key,
    valueAt: path => lookUp(root, path).value,
  };
}

function lookUp(root: Place, path: Path): Place {
  let place = root;
  for (const part of path) {
    const inner = typeof part === 'number' ? place.items[part] : place.fields.get(part);
    if (!inner) break;
    place = inner;
  }
  return place;
}

const newPlace = (key: Range, value: Range, isImplied = false): Place => ({
  key,
  value,
  fields: new Map(),
  items: [],
  isImplied,
});

class PlaceFinder {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    if (text.startsWith('\uFEFF')) this.#at = 1;
  }

  find(): Place {
    const start = { start: this.#at, end: this.#at + 1 };
    const root = newPlace(start, start);
    let table = root;
    for (this.#skipBlanks(); this.#at < this.#text.length; this.#skipBlanks()) {
      if (this.#text[this.#at] === '[') table = this.#header(root);
      else this.#assignment(table);
    }
    return root;
  }

  /** `[a.b]` or `[[a.b]]`: gives the table that the lines below it belong to. */
  #header(root: Place): Place {
    const start = this.#at;
    const isList = this.#text.startsWith('[[', start);
    this.#at += isList ? 2 : 1;
    const parts = this.#key(']');
    this.#at += isList ? 2 : 1;
    const whole = { start, end: this.#at };
    const { owner, last } = descend(root, parts);
    const known = owner.fields.get(last.name);
    if (isList) {
      const list = known ?? newPlace(last.range, whole);
      owner.fields.set(last.name, list);
      const item = newPlace(last.range, whole);
      list.items.push(item);
      return item;
    }
    const table = known ?? newPlace(last.range, whole);
    if (table.isImplied) Object.assign(table, { key: last.range, value: whole, isImplied: false });
    owner.fields.set(last.name, table);
    return table;
  }

  #assignment(table: Place): void {
    const parts = this.#key('=');
    this.#at++;
    this.#skipBlanks();
    const { owner, last } = descend(table, parts);
    owner.fields.set(last.name, this.#value(last.range));
  }

  /** Ends at the character that closes the key. */
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

  /** `key` is `undefined` for what is in a list. */
  #value(key: Range | undefined): Place {
    const start = this.#at;
    const place = newPlace({ start, end: start }, { start, end: start });
    const first = this.#text[start];
    if (first === '[') this.#inside(']', () => place.items.push(this.#value(undefined)));
    else if (first === '{') this.#inside('}', () => this.#assignment(place));
    else if (first === '"' || first === "'") this.#skipString();
    else this.#skipPlainValue();
    place.value = { start, end: this.#at };
    place.key = key ?? place.value;
    return place;
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

  /** A number, a date or a truth value. A date may have a space before its time. */
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
    // A long string may end with one or two quotes of its own.
    for (let more = 0; isLong && more < 2 && this.#text[this.#at] === quote; more++) this.#at++;
  }

  /** White space, line ends and comments. */
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

/** Goes to the table that the last part of a key stands in. In a list of tables, that is the newest one. */
function descend(from: Place, parts: readonly KeyPart[]): { owner: Place; last: KeyPart } {
  const last = parts.at(-1) ?? { name: '', range: from.key };
  let owner = from;
  for (const { name, range } of parts.slice(0, -1)) {
    const inner = owner.fields.get(name) ?? newPlace(range, range, true);
    owner.fields.set(name, inner);
    owner = inner.items.at(-1) ?? inner;
  }
  return { owner, last };
}

function keyName(written: string): string {
  if (!/^["']/.test(written)) return written;
  return written.includes('\\') ? String(parse(`key = ${written}`)['key']) : written.slice(1, -1);
}

/** A TOML file: its value, and the way back from a path in it to a place in the text. */
export class TomlSource {
  readonly displayFile: string;
  readonly text: string;
  /** `undefined` if it is not TOML. */
  readonly value: Readonly<Record<string, unknown>> | undefined;
  /** What TOML itself objects to: its parser stops at the first mistake. */
  readonly fault: Fault | undefined;
  #lines: LineIndex | undefined;
  #places: Places | undefined;

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
    return this.#findPlaces().keyAt(path);
  }

  range(path: Path): Range {
    return this.#findPlaces().valueAt(path);
  }

  #findPlaces(): Places {
    this.#places ??= findPlaces(this.text);
    return this.#places;
  }
}

function faultOf({ message, line, column }: TomlError, text: string): Fault {
  const [said = ''] = message.replace(/^Invalid TOML document: /, '').split('\n');
  const start = lineStart(text, line) + column - 1;
  return { start, end: start + 1, message: `this is not TOML: ${said}`, hint: hints.get(said) };
}

function lineStart(text: string, line: number): number {
  let start = 0;
  for (let passed = 1; passed < line; passed++) start = text.indexOf('\n', start) + 1;
  return start;
}

const redefined = 'a key or a [table] can be written only once: join the two';

const unclosed = 'close the quote; text of several lines stands between """ or three of \'';

const hints: ReadonlyMap<string, string> = new Map([
  ['trying to redefine an already defined table or value', redefined],
  ['trying to redefine an already defined value', redefined],
  ['invalid value', 'put text in quotes'],
  ['unfinished string', unclosed],
  ['control characters are not allowed in strings', unclosed],
  [
    'expected comma or end of structure',
    'a list or a table inside of a line is not closed, or a comma is missing',
  ],
  ['illegal character in key', 'put a key that holds more than letters, digits, - and _ in quotes'],
]);
