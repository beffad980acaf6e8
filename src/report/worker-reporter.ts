import type { Observation } from '../engine/environment.ts';
import { statusColour } from '../terminal/glyphs.ts';
import { displayWidth } from '../terminal/text.ts';
import { newsLines, observationLines, type WorkerLine } from '../terminal/worker/reporter.ts';
import type { WorkerNews } from '../worker/contract.ts';
import { clockTime } from './moments.ts';
import { type Paint, painter } from './paint.ts';

/** Shows what workers do. */
export interface WorkersReporter {
  /** `worker`: its place among those of this process, from 0. */
  observe(worker: number, observation: Observation): void;
  tell(worker: number, news: WorkerNews): void;
  close(): Promise<void>;
}

export interface PlainWorkersOptions {
  readonly write: (text: string) => void;
  readonly color: boolean;
  readonly branch: string;
  /** Only what somebody has to know even so. */
  readonly quiet?: boolean | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

interface Sayer {
  /** Of all workers of this process. */
  readonly names: readonly (string | undefined)[];
  readonly worker: number;
  readonly at: number;
  readonly paint: Paint;
}

/** `12:01:03 worker-1  landed ...`; what has further lines keeps them below. */
export function namedLines(
  { status, text }: WorkerLine,
  { names, worker, at, paint }: Sayer,
): readonly string[] {
  const name = names[worker] ?? 'worker';
  const width = names.reduce((widest, each) => Math.max(widest, displayWidth(each ?? '')), 0);
  const column = name + ' '.repeat(Math.max(0, width - displayWidth(name)));
  const [first = '', ...further] = text.split('\n');
  const colour = status === undefined ? undefined : statusColour(status);
  return [`${paint('dim', clockTime(at))} ${paint('bold', column)}  ${paint(colour, first)}`, ...further];
}

const toBeKnown: ReadonlySet<WorkerNews['kind']> = new Set(['problems', 'let-go', 'left']);

/** A log for pipes and CI: `12:01:03 worker-1  landed 3f2c1ab0d2 Mend the parser on main`. */
export function createPlainWorkersReporter({
  write,
  color,
  branch,
  quiet = false,
  now,
}: PlainWorkersOptions): WorkersReporter {
  const paint = painter(color);
  const names: string[] = [];
  const told = new Set<string>();
  const put = (worker: number, { status, text, detail }: WorkerLine) => {
    const line = { status, text: detail === undefined ? text : `${text} (${detail})` };
    for (const shown of namedLines(line, { names, worker, at: now(), paint })) write(`${shown}\n`);
  };
  return {
    observe: (worker, observation) => {
      if (quiet && observation.kind !== 'notice') return;
      for (const line of observationLines(observation)) put(worker, line);
    },
    tell: (worker, news) => {
      if (news.kind === 'enlisted') names[worker] = news.name;
      if (quiet && !toBeKnown.has(news.kind)) return;
      for (const line of newsLines(news, { branch })) {
        // What is wrong with a task stays wrong until somebody mends it, and need not be said at every look.
        if (news.kind === 'problems' && told.has(line.text)) continue;
        if (news.kind === 'problems') told.add(line.text);
        put(worker, line);
      }
    },
    close: async () => {},
  };
}
