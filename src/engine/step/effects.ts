import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RepriseError } from '../../core/errors.ts';
import type { Unit } from '../../git/orders.ts';
import type { ArtifactRule } from '../../workflow/model.ts';
import type { Environment, Observer } from '../environment.ts';
import { unitFileName } from '../log-files.ts';
import { outsideEffects } from '../outside-effects.ts';
import type { Artifact } from '../run/messages.ts';
import { sessionEffects } from './agent/session-effects.ts';
import { collectArtifacts } from './artifacts.ts';
import { performShell, type ShellAnswer, type ShellRequest } from './commands.ts';
import type { BuiltInWork } from './contract.ts';
import { landingEffects } from './landing-effects.ts';
import { openOnce, withoutLease } from './taping.ts';
import { folderKey, workspaceEffects } from './workspace-effects.ts';

/** Every call to the outside that the work of steps makes, declared once. */
export type WorkEffects = ReturnType<typeof createWorkEffects>;

export function createWorkEffects(
  environment: Environment,
  observe: Observer,
  repository = openOnce(environment),
) {
  const { world, clock, projectRoot, stateDir, worktrees, agents } = environment;
  const notice = (message: string) => observe({ kind: 'notice', message });
  /** Agents of which it was said that nobody knows what they cost. */
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
      perform: (request, { signal }) =>
        limited(environment, signal, request.limitMs, bounded =>
          performShell({ environment, observe }, request, bounded),
        ),
    });

  return {
    /** What does not change while the process lives. */
    projectRoot,
    stateDir,
    worktrees,
    agents,

    /** Throws if the program brings no such work along. */
    builtIn(name: string): BuiltInWork {
      const work = environment.builtIns?.[name];
      if (work) return work;
      throw new RepriseError('INTERNAL', `nothing is known of the built-in work ${name}`);
    },

    /** Tells whoever watches. */
    notice,

    /** Says once that what an agent costs is not known. */
    noticeBlind(runId: string, agent: string): void {
      const key = `${runId}:${agent}`;
      if (blind.has(key)) return;
      blind.add(key);
      notice(
        `the agent ${agent} does not say what it costs: the budget in dollars cannot be kept; set \`price\` in its definition, or limit tokens`,
      );
    },

    ...workspaceEffects(environment, { observe, repository }),
    ...sessionEffects(environment, observe),
    ...landingEffects(environment, { observe, repository }),

    now: outsideEffects({ world, clock }).now,

    shell: shell('shell.run', false),
    /** Not reached by cancellation: give it a limit. */
    cleanupShell: shell('shell.clean-up', true),

    collectArtifacts: world.effect<
      {
        readonly runId: string;
        readonly unit: Unit;
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
          projectRoot,
        }),
    }),

    /** A folder with nothing but these files. */
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

/** Where what a unit hands on is kept. */
export const artifactFolder = (
  { stateDir }: Pick<Environment, 'stateDir'>,
  { runId, unit }: { readonly runId: string; readonly unit: Unit },
): string => join(stateDir, 'artifacts', runId, unitFileName(unit));

export const scratchFolder = (
  { stateDir }: Pick<Environment, 'stateDir'>,
  { runId, name }: { readonly runId: string; readonly name: string },
): string => join(stateDir, 'scratch', runId, name);

/** Aborted by the signal, or when the time is up. */
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
