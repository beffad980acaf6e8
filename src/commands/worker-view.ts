import type { Observation } from '../engine/environment.ts';
import { type CommandIo, lookOf, writeLines } from '../project/host.ts';
import { jsonText } from '../terminal/text.ts';
import type { WorkersReporter } from '../terminal/worker/reporter.ts';
import type { WorkerNews } from '../worker/contract.ts';

export interface WorkersViewOptions {
  readonly branch: string;
  /** How many there are going to be. */
  readonly workers?: number | undefined;
  /** NDJSON on standard output: what workers tell, and the events of their runs. */
  readonly json?: boolean | undefined;
  readonly quiet?: boolean | undefined;
}

/** What is shown while workers are at work: the view that fits the flags. */
export async function openWorkersView(
  io: CommandIo,
  { branch, workers = 1, json, quiet }: WorkersViewOptions,
): Promise<WorkersReporter> {
  if (json) return jsonView(io);
  const { terminal } = io;
  if (terminal && !quiet) {
    const { createLiveWorkersReporter } = await import('../terminal/worker/live.ts');
    return createLiveWorkersReporter({
      ...lookOf(io, 'err'),
      stdout: terminal,
      workers,
      branch,
      now: () => io.now(),
      isStopping: () => io.interrupt.aborted,
    });
  }
  const { createPlainWorkersReporter } = await import('../terminal/worker/reporter.ts');
  const { color } = lookOf(io, 'err');
  return createPlainWorkersReporter({
    write: text => io.err(text),
    color,
    branch,
    quiet,
    now: () => io.now(),
  });
}

function jsonView(io: CommandIo): WorkersReporter {
  const names: string[] = [];
  const put = (worker: number, data: object) =>
    writeLines(io.out, jsonText({ worker: names[worker] ?? null, ...data } as never));
  return {
    observe: (worker: number, observation: Observation) => {
      if (observation.kind === 'events') for (const event of observation.events) put(worker, event);
      if (observation.kind === 'notice') writeLines(io.err, observation.message);
    },
    tell: (worker: number, { kind, ...news }: WorkerNews) => {
      if (kind === 'enlisted' && 'name' in news) names[worker] = news.name;
      put(worker, { type: `worker.${kind}`, ...news });
    },
    close: async () => {},
  };
}
