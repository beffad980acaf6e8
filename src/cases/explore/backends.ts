import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { RepriseError } from '../../core/errors.ts';
import { modelOf } from '../../git/model/load.ts';
import { branchRef, type Model } from '../../git/model/repository.ts';
import { openRepository } from '../../git/repository.ts';
import { worktreeEntries } from '../../git/workspace/entries.ts';
import { noLog, type OpenLog } from '../../process/log.ts';
import type { Host, OpenStore } from '../../project/host.ts';
import { openStore as openSqlite, storeFile } from '../../project/open-engine.ts';
import { memoryStore } from '../../store/memory.ts';
import type { EventStore } from '../../store/port.ts';
import type { Invariant } from '../manifest/manifest.ts';
import { onStage, type Stage, stageHistory } from '../perform/stage.ts';
import type { DeltaOptions } from '../replay/serve-session.ts';
import type { Violation } from './contract.ts';
import type { RepositoryEnd } from './endings.ts';
import type { SharedState } from './key-check/check.ts';
import { GitState, modelFacts, StoreFacts, StoreRows } from './key-check/states.ts';
import { applyInModel, inModel, learnRecordings } from './model-handlers.ts';
import type { PreparedCase } from './prepare.ts';

/** Where schedules are played: on real git, or on a model of it in memory. */
export interface Theatre {
  readonly kind: 'memory' | 'git';
  readonly prepared: PreparedCase;
  /** Everything as it is before the first step that is explored. One scene at a time. */
  open(): Promise<Scene>;
  /** One like it, to play there at the same time, if that brings something forward. */
  another?(): Promise<Theatre>;
}

/** The surroundings of one schedule. */
export interface Scene {
  readonly surround?: Host['surround'];
  readonly openStore: OpenStore;
  /** Where what scripts print goes; into files unless it is said. */
  readonly openLog?: OpenLog | undefined;
  readonly deltas: DeltaOptions;
  /** Names the files that are checked out in a folder. */
  readonly filesAt: (folder: string) => string | undefined | Promise<string | undefined>;
  /** To be asked when all steps are over. */
  repository(): Promise<RepositoryEnd>;
  store(): EventStore | undefined;
  /** What steps share, as it is now. */
  look(): Promise<SharedState>;
  /** What it cannot do, although it was asked to. */
  problems(): readonly RepriseError[];
  /** Checks what the case says of its repository. */
  violation(): Promise<Violation | undefined>;
  close(): Promise<void>;
}

/** All commits that one leads to, itself among them. */
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

/** Real git, real files and SQLite, in the folder of the case. */
export const gitTheatre = (prepared: PreparedCase): Theatre => ({
  kind: 'git',
  prepared,
  open: async () => {
    prepared.restore();
    return gitScene(prepared);
  },
  another: async () => gitTheatre(await prepared.another()),
});

function gitScene({ stage, env, manifest, loaded }: PreparedCase): Scene {
  let opened: Promise<EventStore> | undefined;
  let store: EventStore | undefined;
  const repository = openRepository({ cwd: stage.repo, env, runProgram: stage.runProgram });
  repository.catch(() => {});
  const state = new GitState(stage.repo);
  const rows = new StoreRows(storeFile(join(stage.repo, '.reprise', 'state')));
  return {
    surround: onStage(stage),
    // One for all: whoever is cut off in the middle never closes his own.
    openStore: async stateDir => {
      opened ??= openSqlite(stateDir, { durable: false });
      store = await opened;
      return { ...store, close: async () => {} };
    },
    deltas: { repository: () => repository, blobs: loaded.blob, applyDeltas: true },
    filesAt: folder => stage.git.with({ cwd: folder }).line(['rev-parse', 'HEAD^{tree}']),
    repository: () => repositoryEnd(stage, manifest.base?.branch ?? 'main'),
    store: () => store,
    look: async () => new Map([...state.facts(), ...(await rows.facts())]),
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
  const { git, repo } = stage;
  const worktrees = worktreeEntries({ git, root: repo, commonDir: join(repo, '.git') });
  return {
    main,
    onMain,
    tree: await git.line(['rev-parse', `refs/heads/${main}^{tree}`]),
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
    const said = `${stdout ?? ''}${stderr ?? ''}${error?.message ?? ''}`.trim();
    return { what: `invariant ${name}`, message: `${name} does not hold${said === '' ? '' : `:\n${said}`}` };
  }
  return undefined;
}

/** Git and files as a model of them, all but the places of agents, and a store in memory. Throws CANNOT_EXPLORE for what only git can do. */
export async function memoryTheatre(prepared: PreparedCase): Promise<Theatre> {
  const { stage, env, manifest, loaded } = prepared;
  const script = manifest.steps.find(step => step.script !== undefined);
  if (script) throw onlyOnGit(prepared, `step ${script.name} is a shell script`);
  if (manifest.live.length > 0) throw onlyOnGit(prepared, `${manifest.live.join(', ')} run for real`);
  if (existsSync(storeFile(join(stage.repo, '.reprise', 'state'))))
    throw onlyOnGit(prepared, 'there are runs or claims before the first step that is explored');
  if (manifest.triggers.some(({ action }) => action.kind === 'move_main'))
    throw onlyOnGit(prepared, 'a trigger moves its branch');
  const repository = await openRepository({ cwd: stage.repo, env, runProgram: stage.runProgram });
  const template = await modelOf(repository);
  await learnRecordings(template, { repository, recordings: loaded.sessions, blob: loaded.blob });
  return {
    kind: 'memory',
    prepared,
    open: async () => {
      rmSync(join(stage.repo, '.reprise', 'state', 'locks'), { recursive: true, force: true });
      return memoryScene(template.clone(), prepared);
    },
  };
}

const onlyOnGit = ({ found }: PreparedCase, why: string): RepriseError =>
  new RepriseError('CANNOT_EXPLORE', `${found.name} cannot be explored in memory: ${why}`, {
    hint: `explore it on real git: reprise explore ${found.name} --on git`,
  });

function memoryScene(model: Model, { stage, manifest, loaded }: PreparedCase): Scene {
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
    // Commands of the case need files: they are asked on real git.
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
