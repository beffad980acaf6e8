import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import { createGit, openRepository } from '../../git/index.ts';
import { branchRef, type Model, modelOf } from '../../git/model/index.ts';
import { worktreeEntries } from '../../git/workspace/index.ts';
import { noLog, type OpenLog } from '../../process/index.ts';
import { type Host, type OpenStore, openStore as openSqlite, storeFile } from '../../project/index.ts';
import { type EventStore, memoryStore } from '../../store/index.ts';
import type { Invariant } from '../manifest/manifest.ts';
import { onStage, type Stage, stageHistory, stateOf } from '../perform/stage.ts';
import type { DeltaOptions } from '../replay/serve-session.ts';
import type { Violation } from './contract.ts';
import type { SharedFacts } from './key-check/check.ts';
import { GitState, modelFacts, StoreFacts, StoreRows } from './key-check/states.ts';
import { applyInModel, inModel, learnRecordings } from './model-handlers.ts';
import type { RepositoryEnd } from './outcomes.ts';
import type { PreparedCase } from './prepare.ts';

/** Runs schedules of a case: on real git, or on an in-memory model of it. */
export interface Backend {
  readonly kind: 'memory' | 'git';
  readonly prepared: PreparedCase;
  /** Restores the state before the first explored command. Only one session may be open at a time. */
  open(): Promise<BackendSession>;
  /** Creates an independent copy, so that schedules can run in parallel. Absent where that would not be faster. */
  another?(): Promise<Backend>;
}

/** The state that one schedule runs on. */
export interface BackendSession {
  readonly surround?: Host['surround'];
  readonly openStore: OpenStore;
  /** Opens the log for script output. Defaults to files. */
  readonly openLog?: OpenLog | undefined;
  readonly deltas: DeltaOptions;
  /** Returns the id of the tree that is checked out in a folder. */
  readonly filesAt: (folder: string) => string | undefined | Promise<string | undefined>;
  /** Final state of the repository. Only valid once every command has ended. */
  repository(): Promise<RepositoryEnd>;
  store(): EventStore | undefined;
  /** Current state that the commands share. */
  look(): Promise<SharedFacts>;
  /** Errors of effects that the backend does not support. */
  problems(): readonly RepriseError[];
  /** Checks the `[[invariants]]` of the case. */
  violation(): Promise<Violation | undefined>;
  close(): Promise<void>;
}

/** Returns the ancestors of a commit and the commit itself. */
function reachable(
  tip: string | undefined,
  parentsOf: (commit: string) => readonly string[],
): ReadonlySet<string> {
  const found = new Set<string>();
  const pending = tip === undefined ? [] : [tip];
  for (let id = pending.pop(); id !== undefined; id = pending.pop()) {
    if (found.has(id)) continue;
    found.add(id);
    pending.push(...parentsOf(id));
  }
  return found;
}

/** A backend with real git, real files and SQLite, in the folder of the case. */
export const gitBackend = (prepared: PreparedCase): Backend => ({
  kind: 'git',
  prepared,
  open: async () => {
    prepared.restore();
    return gitBackendSession(prepared);
  },
  another: async () => gitBackend(await prepared.another()),
});

function gitBackendSession({ stage, env, manifest, loaded }: PreparedCase): BackendSession {
  let opened: Promise<EventStore> | undefined;
  let store: EventStore | undefined;
  const git = createGit({ cwd: stage.repo, env, runProgram: stage.runProgram });
  const repository = { root: stage.repo, commonDir: join(stage.repo, '.git'), git };
  const state = new GitState(stage.git);
  const rows = new StoreRows(storeFile(stateOf(stage.repo)));
  return {
    surround: onStage(stage),
    // All commands share one connection: a killed command would never close its own.
    openStore: async stateDir => {
      opened ??= openSqlite(stateDir, { durable: false });
      store = await opened;
      return { ...store, close: async () => {} };
    },
    deltas: { repository: async () => repository, blobs: loaded.blob, applyDeltas: true },
    filesAt: folder => stage.git.with({ cwd: folder }).line(['rev-parse', 'HEAD^{tree}']),
    repository: () => repositoryEnd(stage, manifest.base?.branch ?? 'main'),
    store: () => store,
    look: async () => new Map([...(await state.facts()), ...(await rows.facts())]),
    problems: () => [],
    violation: async () => brokenInvariant(manifest.invariants, { cwd: stage.repo, env }),
    close: async () => {
      rows.close();
      await (await opened)?.close();
    },
  };
}

async function repositoryEnd(stage: Stage, main: string): Promise<RepositoryEnd> {
  const { commits, branches } = await stageHistory(stage);
  const onMain = reachable(branches.get(main), id => commits.get(id)?.parents ?? []);
  const worktrees = await worktreeEntries(stage);
  return {
    main,
    onMain,
    tree: commits.get(branches.get(main) ?? '')?.tree,
    tips: branches,
    worktrees: worktrees.map(({ path }) => path),
  };
}

function brokenInvariant(
  invariants: readonly Invariant[],
  options: { readonly cwd: string; readonly env: PreparedCase['env'] },
): Violation | undefined {
  for (const { name, check } of invariants) {
    const [program, args, input] =
      check.kind === 'run'
        ? ['bash', ['-e', '-o', 'pipefail', '-s'], check.script]
        : [check.argv[0] ?? '', check.argv.slice(1), ''];
    const { status, stdout, stderr, error } = spawnSync(program, args, {
      ...options,
      input,
      encoding: 'utf8',
    });
    if (status === 0) continue;
    const output = `${stdout ?? ''}${stderr ?? ''}${error?.message ?? ''}`.trim();
    return {
      what: `invariant ${name}`,
      message: `${name} does not hold${output === '' ? '' : `:\n${output}`}`,
    };
  }
  return undefined;
}

/**
 * A backend with a model of git and files, and a store in memory; only agent slots are real lock files. Throws
 * CANNOT_EXPLORE for a case that needs real git.
 */
export async function memoryBackend(prepared: PreparedCase): Promise<Backend> {
  const { stage, env, manifest, loaded } = prepared;
  const script = manifest.steps.find(step => step.script !== undefined);
  if (script) throw onlyOnGit(prepared, `command ${script.name} is a shell script`);
  if (manifest.live.length > 0) throw onlyOnGit(prepared, `it runs ${manifest.live.join(', ')} for real`);
  if (existsSync(storeFile(stateOf(stage.repo))))
    throw onlyOnGit(prepared, 'runs or claims exist before the first explored command');
  if (manifest.triggers.some(({ action }) => action.kind === 'move_main'))
    throw onlyOnGit(prepared, 'a trigger moves the branch');
  const repository = await openRepository({ cwd: stage.repo, env, runProgram: stage.runProgram });
  const template = await modelOf(repository);
  await learnRecordings(template, { repository, recordings: loaded.sessions, blob: loaded.blob });
  return {
    kind: 'memory',
    prepared,
    open: async () => {
      rmSync(join(stateOf(stage.repo), 'locks'), { recursive: true, force: true });
      return memoryBackendSession(template.clone(), prepared);
    },
  };
}

const onlyOnGit = ({ found }: PreparedCase, why: string): RepriseError =>
  new RepriseError('CANNOT_EXPLORE', `${found.name} cannot be explored in memory: ${why}`, {
    hint: `use real git: reprise explore ${found.name} --on git`,
  });

function memoryBackendSession(model: Model, { stage, manifest, loaded }: PreparedCase): BackendSession {
  const store = memoryStore();
  const problems: RepriseError[] = [];
  const stored = new StoreFacts(store);
  const main = manifest.base?.branch ?? 'main';
  return {
    surround: inModel({ model, onMissing: error => void problems.push(error) }),
    openLog: noLog,
    openStore: async () => ({ ...store, close: async () => {} }),
    deltas: {
      repository: async () => undefined,
      blobs: loaded.blob,
      applyDeltas: true,
      applyInstead: applyInModel(model),
    },
    filesAt: folder => model.worktreeAt(folder)?.files,
    repository: async () => modelEnd(model, { main, root: stage.repo }),
    store: () => store,
    look: async () => new Map([...modelFacts(model, stage.repo), ...(await stored.facts())]),
    problems: () => problems,
    // The checks need real files, so they only run on real git.
    violation: async () => undefined,
    close: async () => {},
  };
}

function modelEnd(
  model: Model,
  { main, root }: { readonly main: string; readonly root: string },
): RepositoryEnd {
  const tip = model.tip(main);
  const branches = [...model.refs].flatMap(([ref, commit]): (readonly [string, string])[] =>
    ref.startsWith(branchRef('')) ? [[ref.slice(branchRef('').length), commit]] : [],
  );
  return {
    main,
    onMain: reachable(tip, id => model.objects.commitIfThere(id)?.parents ?? []),
    tree: tip === undefined ? undefined : model.treeOf(tip),
    tips: new Map(branches),
    worktrees: [...model.worktrees.keys()].filter(path => path !== root),
  };
}
