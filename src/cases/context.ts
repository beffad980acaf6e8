import type { SessionFactory } from '../agents/index.ts';
import { toTimestamp } from '../core/index.ts';
import { systemClock } from '../effects/index.ts';
import type { TapeHeader } from '../effects/recording/index.ts';
import type { NamedPath } from '../effects/redact/index.ts';
import type { Git } from '../git/index.ts';
import type { CaseManifest } from './manifest/manifest.ts';
import type { Program } from './perform/perform.ts';
import { type Stage, stateOf } from './perform/stage.ts';

export interface Packages {
  /** Nearest `node_modules` folder of the project, if there is one. */
  readonly installed: string | undefined;
  /** Folder of Reprise itself, in case it is not installed there. */
  readonly reprise: string;
}

/** Services and settings of the process that performs cases. */
export interface TestContext {
  readonly program: Program;
  /** Environment of this process. Recordings use it, replays see almost nothing of it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Signal that stops recording. */
  readonly interrupt?: AbortSignal | undefined;
  /** Version of Reprise. */
  readonly version: string;
  /** Packages that workflow modules can import. */
  readonly packages: Packages;
}

/** Returns the versions and the time for the header of a recording. */
export const madeNow = async (
  git: Git,
  { version }: Pick<TestContext, 'version'>,
): Promise<Omit<TapeHeader, 'case' | 'step'>> => ({
  reprise: version,
  git: (await git.line(['--version'])).replace(/^git version /, ''),
  node: process.version.slice(1),
  recorded_at: toTimestamp(systemClock.now()),
});

/** Returns the folders of a stage with their names on tapes. */
export const stagePaths = ({ folder, repo, home }: Stage): readonly NamedPath[] => [
  { name: 'repo', path: repo },
  { name: 'state', path: stateOf(repo) },
  { name: 'home', path: home },
  { name: 'stage', path: folder },
];

/** Applies the settings of a case to sessions: its model, and whether thoughts are shown. */
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
