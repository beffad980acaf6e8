import type { Program } from './perform/perform.ts';

export interface Packages {
  /** The nearest folder `node_modules` of the project, if there is one. */
  readonly installed: string | undefined;
  /** The folder of Reprise itself, in case it is not installed there. */
  readonly reprise: string;
}

/** What the playing of cases is given of the process that it runs in. */
export interface TestContext {
  readonly program: Program;
  /** Of this process: recordings are made in it, replays see next to nothing of it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Aborted when recording is to stop. */
  readonly interrupt?: AbortSignal | undefined;
  /** Of Reprise. */
  readonly version: string;
  /** What workflows that are modules may import. */
  readonly packages: Packages;
}
