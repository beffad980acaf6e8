import type { Preset } from '../../agents/index.ts';
import type { JsonObject } from '../../core/index.ts';

/** Options of a run of a single agent, without a workflow file. */
export interface AdhocOptions {
  readonly agent?: string | undefined;
  /** Prompt, or `-` to read it from standard input. */
  readonly prompt?: string | undefined;
  readonly promptFile?: string | undefined;
  /** Number of copies. */
  readonly concurrency?: number | undefined;
  /** Commands that must pass for the step to succeed. */
  readonly check?: readonly string[] | undefined;
  readonly permissions?: Preset | undefined;
}

/** A Reprise command that repeats the run from any folder of the project. */
export interface JournalCommand {
  readonly command: 'run' | 'resume' | 'worker';
  readonly args: readonly string[];
}

export const runLine = (source: string, input: JsonObject): JournalCommand => ({
  command: 'run',
  args: [source, ...(Object.keys(input).length === 0 ? [] : ['--input-json', JSON.stringify(input)])],
});

/**
 * Contains the text of the prompt, even if it came from a file. `--prompt=` allows a prompt that starts with `-`.
 */
export const adhocLine = (
  agent: string,
  { concurrency, check = [], permissions }: AdhocOptions,
  { prompt }: { readonly prompt: string },
): JournalCommand => ({
  command: 'run',
  args: [
    ...['--agent', agent],
    `--prompt=${prompt}`,
    ...(concurrency === undefined ? [] : ['--concurrency', String(concurrency)]),
    ...check.map(script => `--check=${script}`),
    ...(permissions === undefined ? [] : ['--permissions', permissions]),
  ],
});

export const resumeLine = (
  runId: string,
  {
    from,
    rerunChanged,
  }: { readonly from?: string | undefined; readonly rerunChanged?: boolean | undefined } = {},
): JournalCommand => ({
  command: 'resume',
  args: [
    runId,
    ...(from === undefined ? [] : [`--from=${from}`]),
    ...(rerunChanged ? ['--rerun-changed'] : []),
  ],
});

/** Runs a single task as the worker with this name. */
export const workerLine = ({
  name,
  branch,
  agent,
  budget,
}: {
  readonly name: string;
  readonly branch: string;
  readonly agent?: string | undefined;
  readonly budget?: number | undefined;
}): JournalCommand => ({
  command: 'worker',
  args: [
    '--once',
    ...['--name', name],
    ...['--branch', branch],
    ...(agent === undefined ? [] : ['--agent', agent]),
    ...(budget === undefined ? [] : ['--budget', String(budget)]),
  ],
});

/** Adds the options that every command that executes a run accepts. */
export const withLimits = (
  { command, args }: JournalCommand,
  { places, wait }: { readonly places: number | undefined; readonly wait: boolean | undefined },
): JournalCommand => ({
  command,
  args: [
    ...args,
    ...(places === undefined ? [] : ['--max-concurrent', String(places)]),
    ...(wait ? ['--wait'] : []),
  ],
});
