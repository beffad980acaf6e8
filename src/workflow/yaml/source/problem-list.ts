import { isScalar, type Scalar } from 'yaml';
import type { Position } from '../../../core/index.ts';
import type { ParseFault, Span } from '../../expression/parse.ts';
import type { Problem } from '../../problems.ts';
import type { Path, Range, YamlSource } from './yaml-source.ts';

/**
 * Maps an offset in a scalar's value to an offset in the file. YAML folds lines, strips indentation and reads escapes,
 * but never adds, drops or reorders anything except white space. So the n-th visible character of the value is the
 * n-th visible character of its source.
 */
export function offsetInFile(text: string, scalar: Scalar, offsetInValue: number): number {
  const value = String(scalar.value);
  const [start = 0, end = text.length] = scalar.range ?? [];
  const visibleBefore = countVisible(value.slice(0, offsetInValue));
  const onVisible = offsetInValue < value.length && isVisible(value.charCodeAt(offsetInValue));
  const wanted = onVisible ? visibleBefore + 1 : visibleBefore;
  let seen = 0;
  let last = contentStart(text, scalar, start);
  for (const unit of sourceUnits(text, scalar, { start: last, end })) {
    if (!unit.visible) continue;
    seen++;
    if (seen === wanted) return onVisible ? unit.at : unit.at + unit.length;
    last = unit.at;
  }
  return last;
}

const isVisible = (code: number): boolean => code !== 32 && code !== 9 && code !== 10 && code !== 13;

function countVisible(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) if (isVisible(text.charCodeAt(at))) count++;
  return count;
}

/** Returns the offset after the opening quote, or after the line with `|` or `>`. */
function contentStart(text: string, { type }: Scalar, start: number): number {
  switch (type) {
    case 'QUOTE_DOUBLE':
    case 'QUOTE_SINGLE':
      return start + 1;
    case 'BLOCK_LITERAL':
    case 'BLOCK_FOLDED': {
      const newline = text.indexOf('\n', start);
      return newline === -1 ? start : newline + 1;
    }
    default:
      return start;
  }
}

interface SourceUnit {
  readonly at: number;
  readonly length: number;
  readonly visible: boolean;
}

function* sourceUnits(
  text: string,
  { type }: Scalar,
  { start, end }: { readonly start: number; readonly end: number },
): Generator<SourceUnit> {
  for (let at = start; at < end; ) {
    const unit = type === 'QUOTE_DOUBLE' ? escapedUnit(text, at) : undefined;
    const length = unit?.length ?? (type === 'QUOTE_SINGLE' && text.startsWith("''", at) ? 2 : 1);
    const visible = unit?.visible ?? isVisible(text.charCodeAt(at));
    // A character outside the basic plane is one escape in the source, but two UTF-16 units in the value.
    for (let half = 0; half < (unit?.units ?? 1); half++) yield { at, length, visible };
    at += length;
  }
}

const escapeLengths: Readonly<Record<string, number>> = { x: 4, u: 6, U: 10 };

function escapedUnit(text: string, at: number) {
  if (text[at] !== '\\') return undefined;
  const letter = text[at + 1] ?? '';
  const length = escapeLengths[letter];
  if (length === undefined) return { length: 2, visible: !/[ \tntr\r\n]/.test(letter), units: 1 };
  const code = Number.parseInt(text.slice(at + 2, at + length), 16);
  return { length, visible: isVisible(code), units: code > 0xffff ? 2 : 1 };
}

/** A problem at a path of a document. */
export interface Complaint {
  readonly path: Path;
  /** If true, the problem points at the last key of the path instead of its value. */
  readonly atKey?: boolean;
  /** Part of the scalar that the problem points at. */
  readonly within?: Span;
  readonly message: string;
  readonly hint?: string | undefined;
}

/** A file that may contain problems. */
export interface TextSource {
  readonly lines: LineIndex;
  positionOf(offset: number): Position;
}

/** Collects the problems of a file and of the files that it uses. Computes positions only for problems. */
export class ProblemList {
  readonly #sources: TextSource[] = [];
  readonly #found: { readonly source: TextSource; readonly range: Range; readonly problem: Problem }[] = [];

  get count(): number {
    return this.#found.length;
  }

  /** Adds a file and its YAML syntax errors. */
  open(source: YamlSource): void {
    this.#sources.push(source);
    for (const { start, end, message, hint } of source.faults)
      this.#add(source, { start, end }, { message, hint });
  }

  add(source: YamlSource, complaint: Complaint): void {
    const { message, hint } = complaint;
    const range = rangeOf(source, complaint);
    // A value with a syntax error also looks missing. The syntax error alone is enough.
    if (source.faults.some(({ start }) => start === range.start)) return;
    this.#add(source, range, { message, hint });
  }

  addFaults(source: YamlSource, path: Path, faults: readonly ParseFault[]): void {
    for (const { start, end, message, hint } of faults)
      this.add(source, { path, within: { start, end }, message, hint });
  }

  /** Adds problems of a file that is not YAML, by their offsets. */
  addText(source: TextSource, faults: readonly ParseFault[]): void {
    if (!this.#sources.includes(source)) this.#sources.push(source);
    for (const { start, end, message, hint } of faults) this.#add(source, { start, end }, { message, hint });
  }

  /** Returns the problems in the order of the files, and from top to bottom within a file. */
  all(): readonly Problem[] {
    const order = new Map(this.#sources.map((source, index) => [source, index]));
    return this.#found
      .toSorted(
        (a, b) => (order.get(a.source) ?? 0) - (order.get(b.source) ?? 0) || a.range.start - b.range.start,
      )
      .map(({ problem }) => problem);
  }

  #add(
    source: TextSource,
    range: Range,
    { message, hint }: { message: string; hint?: string | undefined },
  ): void {
    const position = source.positionOf(range.start);
    this.#found.push({
      source,
      range,
      problem: { message, hint, position, excerpt: source.lines.excerpt(range) },
    });
  }
}

function rangeOf(source: YamlSource, { path, atKey, within }: Complaint): Range {
  if (atKey) return source.keyRangeOf(path);
  const node = source.nodeAt(path);
  if (!within || !isScalar(node)) return source.rangeOf(path);
  const start = offsetInFile(source.text, node, within.start);
  const last = within.end > within.start ? offsetInFile(source.text, node, within.end - 1) + 1 : start + 1;
  return { start, end: Math.max(last, start + 1) };
}

const maxWidth = 110;
const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });
const empty = /^[\p{Mn}\p{Me}\p{Cf}]+$/u;
const wide =
  /^[\p{Emoji_Presentation}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303E\uFF01-\uFF60\uFFE0-\uFFE6]|\uFE0F/u;
const halfWidth = /^[\uFF61-\uFFDC]/u;

/** Returns the number of terminal columns of the text. East Asian wide characters and emoji take two. */
function displayWidth(text: string): number {
  if (/^[\u0020-\u007E]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text))
    if (!empty.test(segment)) width += wide.test(segment) && !halfWidth.test(segment) ? 2 : 1;
  return width;
}

/** Lines and columns of the text. */
export class LineIndex {
  readonly #text: string;
  readonly #starts: readonly number[];

  constructor(text: string) {
    const starts = [0];
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
    this.#text = text;
    this.#starts = starts;
  }

  /** Returns line and column, both counted from 1. */
  at(offset: number): { readonly line: number; readonly column: number } {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.#start(middle) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - this.#start(low) + 1 };
  }

  /** Returns the line of `start` with carets below, up to `end` or the end of the line. */
  excerpt({ start, end }: { readonly start: number; readonly end: number }): string {
    const { line, column } = this.at(start);
    const lineStart = this.#start(line - 1);
    const nextLine = this.#starts[line] ?? this.#text.length + 1;
    const whole = this.#text.slice(lineStart, nextLine - 1).trimEnd();
    const from = Math.max(0, Math.min(column - 1 - maxWidth / 2, whole.length - maxWidth));
    const shown = whole.slice(from, from + maxWidth);
    const at = column - 1 - from;
    const before = shown.slice(0, at).replace(/[^\t]+/g, text => ' '.repeat(displayWidth(text)));
    const carets = '^'.repeat(Math.max(1, displayWidth(shown.slice(at, at + end - start))));
    const number = String(line).padStart(4);
    return `${number} | ${shown}\n${' '.repeat(number.length)} | ${before}${carets}`;
  }

  #start(line: number): number {
    return this.#starts[line] ?? 0;
  }
}
