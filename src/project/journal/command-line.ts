import type { Preset } from '../../agents/agent.ts';
import type { JsonObject } from '../../core/json.ts';

/** A workflow of one agent, from the command line. */
export interface AdhocOptions {
  readonly agent?: string | undefined;
  /** `-` is standard input. */
  readonly prompt?: string | undefined;
  readonly promptFile?: string | undefined;
  /** So many copies. */
  readonly concurrency?: number | undefined;
  /** Commands that must pass before the work counts. */
  readonly check?: readonly string[] | undefined;
  readonly permissions?: Preset | undefined;
}

/** A command of Reprise that does the same again, wherever it is typed in the project. */
export interface JournalCommand {
  readonly command: 'run' | 'resume' | 'worker';
  readonly args: readonly string[];
}

export const runLine = (source: string, input: JsonObject): JournalCommand => ({
  command: 'run',
  args: [source, ...(Object.keys(input).length === 0 ? [] : ['--input-json', JSON.stringify(input)])],
});

/** With the prompt itself, wherever it came from. A text may begin like an option, so it stays in one word. */
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

/** One task, as a worker of that name does it. */
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

/** What every command that brings a run forward takes. */
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
