import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { RepriseError } from '../../core/errors.ts';
import { modelOf } from '../../git/model/load.ts';
import { branchRef, type Model } from '../../git/model/repository.ts';
import { openRepository } from '../../git/repository.ts';
import { noLog } from '../../process/log.ts';
import { storeFile } from '../../project/open-engine.ts';
import { memoryStore } from '../../store/memory.ts';
import { modelFacts, StoreFacts } from '../../testing/explore/keys/model-state.ts';
import { applyInModel, inModel, learnRecordings } from '../../testing/explore/model/surround.ts';
import { reachable } from '../../testing/explore/reachable.ts';
import type { Scene, Theatre } from '../../testing/explore/theatre.ts';
import type { RepositoryEnd } from './endings.ts';
import type { PreparedCase } from './prepare.ts';

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
    repository: async () => repositoryEnd(model, { main, root: stage.repo }),
    store: () => store,
    look: async () => new Map([...modelFacts(model, stage.repo), ...(await stored.facts())]),
    problems: () => problems,
    // Commands of the case need files: they are asked on real git.
    violation: async () => undefined,
    close: async () => {},
  };
}

function repositoryEnd(
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
