import type { ShellEnd } from '../../process/shell-step.ts';
import type { OutputText } from './session-file.ts';

/** The end of an output as the lines that are recorded already, with what is left of a line before them. */
export interface TailOfLines {
  readonly lines: number;
  readonly first?: string | undefined;
  /** The last line was not ended. */
  readonly open?: true | undefined;
}

/** More than the end of an output that is ever kept. */
const keptLines = 20_000;

/** Makes lines of what a script prints and how it ends. */
export class ShellEncoder {
  #last: string[] = [];

  output(stream: OutputText['stream'], lines: readonly string[]): object {
    this.#last.push(...lines);
    if (this.#last.length > 2 * keptLines) this.#last = this.#last.slice(-keptLines);
    return { [stream === 'stdout' ? 'out' : 'err']: lines.join('\n') };
  }

  end(end: ShellEnd): object {
    if (end.kind === 'cancelled') return { end };
    const { tail, ...rest } = end;
    return { end: { ...rest, ...(tail === '' ? {} : { tail: tailOfLines(tail, this.#last) ?? tail }) } };
  }
}

/** `undefined` if the tail is not what the lines end with, as when two streams got mixed. */
function tailOfLines(tail: string, lines: readonly string[]): TailOfLines | undefined {
  const isOpen = !tail.endsWith('\n');
  const wanted = (isOpen ? tail : tail.slice(0, -1)).split('\n');
  const there = lines.slice(-wanted.length);
  if (there.length < wanted.length) return undefined;
  const same = wanted.every((line, index) => index === 0 || line === there[index]);
  const first = wanted[0] ?? '';
  if (!same || !there[0]?.endsWith(first)) return undefined;
  const isWhole = there[0] === first;
  return {
    lines: isWhole ? wanted.length : wanted.length - 1,
    ...(isWhole ? {} : { first }),
    ...(isOpen ? { open: true } : {}),
  };
}

export function textOfTail({ lines, first, open }: TailOfLines, output: readonly string[]): string {
  const last = lines === 0 ? [] : output.slice(-lines);
  return [...(first === undefined ? [] : [first]), ...last].join('\n') + (open ? '' : '\n');
}

/** What was printed, line by line. */
export const linesOf = (output: readonly OutputText[]): readonly string[] =>
  output.flatMap(({ text }) => text.split('\n'));
