import type { SessionFactory } from '../agents/index.ts';
import { toTimestamp } from '../core/index.ts';
import { systemClock } from '../effects/index.ts';
import type { TapeHeader } from '../effects/recording/index.ts';
import type { NamedPath } from '../effects/redact/index.ts';
import type { Git } from '../git/index.ts';
import type { CaseManifest } from './manifest/manifest.ts';
import type { Program } from './perform/perform.ts';
import type { Stage } from './perform/stage.ts';

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

/** What a recording is made with. */
export const madeNow = async (
  git: Git,
  { version }: Pick<TestContext, 'version'>,
): Promise<Omit<TapeHeader, 'case' | 'step'>> => ({
  reprise: version,
  git: (await git.line(['--version'])).replace(/^git version /, ''),
  node: process.version.slice(1),
  recorded_at: toTimestamp(systemClock.now()),
});

/** The folders of a stage, as they are called on tapes. */
export const stagePaths = ({ folder, repo, home }: Stage): readonly NamedPath[] => [
  { name: 'repo', path: repo },
  { name: 'home', path: home },
  { name: 'stage', path: folder },
];

/** Sessions as the case wants them: with its model, and without thoughts unless they are to be shown. */
export const settled =
  (
    open: SessionFactory,
    { model, showThinking }: Pick<CaseManifest, 'model' | 'showThinking'>,
  ): SessionFactory =>
  (request, host) =>
    open(model === undefined ? request : { ...request, agent: { ...request.agent, model } }, {
      ...host,
      onEvent: event => {
        if (event.type !== 'thought' || showThinking) host.onEvent(event);
      },
    });
