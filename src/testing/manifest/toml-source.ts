import { parse, TomlError } from 'smol-toml';
import { findPlaces, type Places } from '../../cases/manifest/toml.ts';
import type { Position } from '../../core/errors.ts';
import type { Fault } from '../../workflow/expression/parse.ts';
import { LineIndex } from '../../workflow/yaml/source/problem-list.ts';
import type { Path, Range } from '../../workflow/yaml/source/yaml-source.ts';

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
