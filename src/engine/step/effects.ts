import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import type { WorkUnit } from '../../git/index.ts';
import type { ArtifactRule } from '../../workflow/index.ts';
import type { Environment, Observer } from '../environment.ts';
import { recordedPath, unitFileName } from '../log-files.ts';
import { outsideEffects } from '../outside-effects.ts';
import type { Artifact } from '../run/messages.ts';
import { sessionEffects } from './agent/session-effects.ts';
import { collectArtifacts } from './artifacts.ts';
import { performShell, type ShellAnswer, type ShellRequest } from './commands.ts';
import type { BuiltInWork } from './contract.ts';
import { landingEffects } from './landing-effects.ts';
import { openOnce, requireOwner, withoutLease } from './taping.ts';
import { folderKey, workspaceEffects } from './workspace-effects.ts';

/** All calls to the outside world that the work of steps makes. */
export type WorkEffects = ReturnType<typeof createWorkEffects>;

export function createWorkEffects(
  environment: Environment,
  observe: Observer,
  repository = openOnce(environment),
) {
  const {
    world,
    clock,
    store,
    projectRoot,
    historyRoot = projectRoot,
    stateDir,
    worktrees,
    agents,
  } = environment;
  const notice = (message: string) => observe({ kind: 'notice', message });
  /** Agents whose unknown cost has been reported. */
  const blind = new Set<string>();
  const inFolderIfAny = ({ folder }: { readonly folder?: string | undefined }) =>
    folder === undefined || folder === projectRoot ? {} : { writes: [folderKey(folder)] };
  const shell = (name: string, cleanup: boolean) =>
    world.effect<ShellRequest, ShellAnswer>({
      name,
      span: 'long',
      cleanup,
      answer: 'inside',
      taped: { args: withoutLease },
      keys: inFolderIfAny,
      perform: async (request, { signal }) => {
        await requireOwner(store, request);
        return limited(environment, signal, request.limitMs, bounded =>
          performShell({ environment, observe }, request, bounded),
        );
      },
    });

  return {
    /** Values that do not change while the process lives. */
    projectRoot,
    historyRoot,
    stateDir,
    worktrees,
    agents,

    /** Throws INTERNAL for an unknown name. */
    builtIn(name: string): BuiltInWork {
      const work = environment.builtIns?.[name];
      if (work) return work;
      throw new RepriseError('INTERNAL', `unknown built-in work ${name}`);
    },

    /** Reports a message to the observer. */
    notice,

    /** Reports once per run that the cost of an agent is unknown. */
    noticeBlind(runId: string, agent: string): void {
      const key = `${runId}:${agent}`;
      if (blind.has(key)) return;
      blind.add(key);
      notice(
        `agent ${agent} does not report its cost, so the budget in dollars cannot be enforced; set \`price\` in its definition, or limit tokens`,
      );
    },

    ...workspaceEffects(environment, { observe, repository }),
    ...sessionEffects(environment, { observe, repository }),
    ...landingEffects(environment, { observe, repository }),

    now: outsideEffects({ world, clock }).now,

    shell: shell('shell.run', false),
    /** Cannot be cancelled, so pass `limitMs`. */
    cleanupShell: shell('shell.clean-up', true),

    collectArtifacts: world.effect<
      {
        readonly runId: string;
        readonly unit: WorkUnit;
        readonly folder: string;
        readonly rules: readonly ArtifactRule[];
      },
      readonly Artifact[]
    >({
      name: 'artifacts.collect',
      span: 'long',
      keys: ({ folder }) => (folder === projectRoot ? {} : { reads: [folderKey(folder)] }),
      perform: ({ runId, unit, folder, rules }) =>
        collectArtifacts({
          folder,
          rules,
          target: artifactFolder(environment, { runId, unit }),
          nameOf: file => recordedPath({ root: historyRoot, stateDir }, file),
        }),
    }),

    /** Creates a folder that contains only these files, and returns its path. */
    writeScratch: world.effect<
      { readonly runId: string; readonly name: string; readonly files: Readonly<Record<string, string>> },
      string
    >({
      name: 'scratch.write',
      span: 'short',
      perform: async ({ files, ...order }) => {
        const folder = scratchFolder(environment, order);
        await rm(folder, { recursive: true, force: true });
        await mkdir(folder, { recursive: true });
        for (const [file, text] of Object.entries(files)) await writeFile(join(folder, file), text);
        return folder;
      },
    }),

    removeScratch: world.effect<string, void>({
      name: 'scratch.remove',
      span: 'short',
      perform: folder => rm(folder, { recursive: true, force: true }),
    }),
  };
}

/** Returns the folder for the artifacts of a unit. */
export const artifactFolder = (
  { stateDir }: Pick<Environment, 'stateDir'>,
  { runId, unit }: { readonly runId: string; readonly unit: WorkUnit },
): string => join(stateDir, 'artifacts', runId, unitFileName(unit));

/** Returns a folder for files that an agent reads. It is not in the git folder, which many agents ignore. */
export const scratchFolder = (
  { worktrees }: Pick<Environment, 'worktrees'>,
  { runId, name }: { readonly runId: string; readonly name: string },
): string => join(worktrees.folder, '.scratch', runId, name);

/** Aborts `body` with the signal or at the timeout. */
async function limited<T>(
  { clock }: Environment,
  signal: AbortSignal,
  limitMs: number | undefined,
  body: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (limitMs === undefined) return body(signal);
  const over = new AbortController();
  const done = new AbortController();
  clock.waitUntil(clock.now() + limitMs, done.signal).then(
    () => over.abort(),
    () => {},
  );
  try {
    return await body(AbortSignal.any([signal, over.signal]));
  } finally {
    done.abort();
  }
}
