import { resolve } from 'node:path';
import { failureLines } from '../../cases/reporters/default.ts';
import type { CaseFailure, CaseResult } from '../../cases/result.ts';
import { painter } from '../../terminal/text.ts';

/**
 * A case that failed. The message is what `reprise test` prints of it. `expected` and `actual` hold the parts of the
 * snapshot that differ, for editors that show the two side by side.
 */
export class CaseFailedError extends Error {
  override readonly name = 'CaseFailedError';
  readonly failures: readonly CaseFailure[];
  declare readonly expected: string | undefined;
  declare readonly actual: string | undefined;

  constructor(result: CaseResult, cwd: string) {
    super(textOf(result));
    this.failures = result.failures;
    const [failure] = result.failures;
    const place = resolve(cwd, failure?.file ?? result.file);
    // Where it was thrown helps nobody; runners show the code around the first line of the stack.
    this.stack = `${this.name}: ${this.message}\n    at ${place}:${failure?.line ?? 1}:1`;
    const sides = sidesOf(result.failures);
    // The difference is in the message: runners that print all fields, or make one of the two, would say it again.
    for (const [name, value] of Object.entries({ failures: this.failures, ...sides, showDiff: false }))
      Object.defineProperty(this, name, { value, enumerable: false });
  }
}

function textOf(result: CaseResult): string {
  const plain = painter(false);
  return result.failures.map(failure => failureLines(result, failure, plain).join('\n')).join('\n\n');
}

function sidesOf(failures: readonly CaseFailure[]): { readonly expected?: string; readonly actual?: string } {
  const diff = failures.find(failure => failure.kind === 'snapshot')?.diff;
  if (diff === undefined) return {};
  const lines = diff
    .replace(/\n$/, '')
    .split('\n')
    .filter(line => !line.startsWith('@@'));
  const without = (sign: string) =>
    lines
      .filter(line => !line.startsWith(sign))
      .map(line => line.slice(1))
      .join('\n');
  return { expected: without('+'), actual: without('-') };
}
