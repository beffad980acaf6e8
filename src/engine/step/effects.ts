import { copyFile, mkdir, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, extname, join, resolve, sep } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import { safeSegment, syncPaths, type WorkUnit } from '../../git/index.ts';
import type { ArtifactRule } from '../../workflow/index.ts';
import {
  type Environment,
  type Observer,
  outsideEffects,
  recordedPath,
  unitFileName,
} from '../environment.ts';
import type { Artifact } from '../run/messages.ts';
import { sessionEffects } from './agent/session-effects.ts';
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

interface CollectRequest {
  /** Absolute path of the folder that contains the files. */
  readonly folder: string;
  readonly rules: readonly ArtifactRule[];
  /** Folder for the copies. */
  readonly target: string;
  /** Returns the path of a copy in the history. */
  readonly nameOf: (file: string) => string;
}

/**
 * Copies the artifacts of a step. Throws ARTIFACT_INVALID unless each is a file that is inside the workspace after all
 * symbolic links are resolved.
 */
async function collectArtifacts(request: CollectRequest): Promise<readonly Artifact[]> {
  const { folder, rules, target, nameOf } = request;
  const inside = await realpath(folder);
  await mkdir(target, { recursive: true });
  const artifacts: Artifact[] = [];
  for (const rule of rules) {
    const source = await fileOf(inside, rule);
    const file = artifactFile(target, rule);
    const partial = `${file}.part`;
    // A rename replaces the file atomically, so a process that reads the old copy is not disturbed.
    await copyFile(source, partial);
    await syncPaths([partial]);
    await rename(partial, file);
    artifacts.push({ name: rule.name, path: nameOf(file) });
  }
  if (artifacts.length > 0) await syncPaths([target, dirname(target)]);
  return artifacts;
}

/** Returns the path of an artifact's copy. */
export const artifactFile = (target: string, { name, path }: ArtifactRule): string =>
  join(target, `${safeSegment(name)}${safeExtension(path)}`);

async function fileOf(folder: string, { name, path }: ArtifactRule): Promise<string> {
  const real = await realpath(resolve(folder, path)).catch(() => undefined);
  if (real === undefined) {
    throw invalid(`the artifact \`${name}\` is missing: there is no ${path} in ${folder}`, {
      hint: 'make the step write it, or correct its `path`, which is relative to the workspace',
    });
  }
  if (!real.startsWith(`${folder}${sep}`)) {
    throw invalid(`the artifact \`${name}\` is outside of the workspace: ${path} leads to ${real}`, {
      hint: 'copy the file into the workspace first',
    });
  }
  if (!(await stat(real)).isFile()) {
    throw invalid(`the artifact \`${name}\` is not a file: ${path}`, {
      hint: 'to pass on a folder, archive it: tar -czf name.tar.gz folder',
    });
  }
  return real;
}

const safeExtension = (path: string): string => /^\.[A-Za-z0-9]{1,16}$/.exec(extname(path))?.[0] ?? '';

const invalid = (message: string, options: { readonly hint: string }): RepriseError =>
  new RepriseError('ARTIFACT_INVALID', message, options);
