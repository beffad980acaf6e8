import { isScalar } from 'yaml';
import type { Position } from '../../../core/errors.ts';
import type { Fault, Span } from '../../expression/ast.ts';
import type { Problem } from '../../problems.ts';
import type { LineIndex } from '../lines.ts';
import { offsetInFile } from '../scalar-position.ts';
import type { Path, Range, YamlSource } from './yaml-source.ts';

/** A problem at its place in a document. */
export interface Complaint {
  readonly path: Path;
  /** Points at the key that the path ends with, not at its value. */
  readonly atKey?: boolean;
  /** Points at a part of the scalar at the path. */
  readonly within?: Span;
  readonly message: string;
  readonly hint?: string | undefined;
}

/** A file that problems may be in. */
export interface TextSource {
  readonly lines: LineIndex;
  positionOf(offset: number): Position;
}

/** Collects what is wrong in one file and in those that it uses. Positions are worked out for problems only. */
export class ProblemList {
  readonly #sources: TextSource[] = [];
  readonly #found: { readonly source: TextSource; readonly range: Range; readonly problem: Problem }[] = [];

  get count(): number {
    return this.#found.length;
  }

  /** Adds a file, with what YAML itself objects to. */
  open(source: YamlSource): void {
    this.#sources.push(source);
    for (const { start, end, message, hint } of source.faults)
      this.#add(source, { start, end }, { message, hint });
  }

  add(source: YamlSource, complaint: Complaint): void {
    const { message, hint } = complaint;
    const range = rangeOf(source, complaint);
    // What YAML could not read is missing as well, which is no news.
    if (source.faults.some(({ start }) => start === range.start)) return;
    this.#add(source, range, { message, hint });
  }

  addFaults(source: YamlSource, path: Path, faults: readonly Fault[]): void {
    for (const { start, end, message, hint } of faults)
      this.add(source, { path, within: { start, end }, message, hint });
  }

  /** Problems in a file that is not YAML, by their offsets. */
  addText(source: TextSource, faults: readonly Fault[]): void {
    if (!this.#sources.includes(source)) this.#sources.push(source);
    for (const { start, end, message, hint } of faults) this.#add(source, { start, end }, { message, hint });
  }

  /** In the order of the files, and within a file from top to bottom. */
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
