import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import type { RepositoryEnd } from '../../cases/explore/endings.ts';
import { GitState } from '../../cases/explore/key-check/states.ts';
import type { PreparedCase } from '../../cases/explore/prepare.ts';
import type { Invariant } from '../../cases/manifest/manifest.ts';
import { onStage, type Stage } from '../../cases/perform/stage.ts';
import { openRepository } from '../../git/repository.ts';
import { worktreeEntries } from '../../git/workspace/entries.ts';
import { openStore as openSqlite, storeFile } from '../../project/open-engine.ts';
import type { EventStore } from '../../store/port.ts';
import { stageHistory } from '../stage-result.ts';
import { StoreRows } from './keys/store-rows.ts';
import { reachable } from './reachable.ts';
import type { Scene, Theatre } from './theatre.ts';
import type { Violation } from './violation.ts';

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
