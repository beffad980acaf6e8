import { relative } from 'node:path';
import { RepriseError } from '../../core/errors.ts';
import type { Cancellation, EffectDefinition } from '../../effects/effect.ts';
import type { World } from '../../effects/world.ts';
import type { EngineEffects } from '../../engine/effects.ts';
import type { Environment } from '../../engine/environment.ts';
import type { Recording } from '../../engine/recording/session-file.ts';
import { artifactFile } from '../../engine/step/artifacts.ts';
import { artifactFolder, scratchFolder, type WorkEffects } from '../../engine/step/effects.ts';
import type { Work } from '../../engine/step/index.ts';
import { mayLand, verificationOf } from '../../engine/step/landing-effects.ts';
import { giveUp, layOut, takeSolution } from '../../git/model/conflicts.ts';
import {
  confirmLanding,
  isLandingFree,
  lockLanding,
  moveLanding,
  prepareLanding,
  unlockLanding,
  verifyLanding,
} from '../../git/model/landing.ts';
import { loadPacks } from '../../git/model/load.ts';
import { branchesIn, type Model, takePorts } from '../../git/model/repository.ts';
import {
  changesIn,
  createWorkspace,
  keepOnBranch,
  markSetUp,
  patchOf,
  removeWorkspace,
  resetWorkspace,
  resolveBase,
  saveWork,
  thereAt,
} from '../../git/model/workspaces.ts';
import type { MoveOrder } from '../../git/orders.ts';
import type { Repository } from '../../git/repository.ts';
import { noLog } from '../../process/log.ts';
import type { Lease } from '../../store/port.ts';
import type { WorkerEffects } from '../../worker/effects/index.ts';
import { withState } from '../../worker/tasks/parse.ts';
import type { ApplyRecorded } from '../replay/serve-session.ts';
import { carryOut } from './model-sessions.ts';

type AnyEffect = (args: never) => Promise<unknown>;
type Result<E extends AnyEffect> = Awaited<ReturnType<E>>;

/** The compiler sees to it that the model takes and gives what the effect itself does. */
const like = <E extends AnyEffect>(
  perform: (args: Parameters<E>[0], cancellation: Cancellation) => Result<E> | Promise<Result<E>>,
  isOver?: (args: Parameters<E>[0]) => boolean,
): PerformOnModel => ({ perform, ...(isOver ? { isOver } : {}) });

/** What engines do with git and files, done to a model. */
const engineOnModel = (
  model: Model,
  environment: Pick<Environment, 'projectRoot' | 'stateDir'>,
): ModelEffects => ({
  'git.base': like<Work['pinBase']>(() => {
    const root = thereAt(model, environment.projectRoot);
    const commit = resolveBase(model, 'HEAD');
    return { ref: root.head.kind === 'branch' ? root.head.branch : 'HEAD', commit };
  }),
  /** No process of this world is left behind. */
  'process.end-orphans': like<EngineEffects['endOrphans']>(() => 0),
  'workspace.base': like<WorkEffects['resolveBase']>(name => resolveBase(model, name)),
  'workspace.tip': like<WorkEffects['tipOfBranch']>(branch => model.tip(branch) ?? null),
  'workspace.ports': like<WorkEffects['takePorts']>(order => takePorts(model, order)),
  'workspace.release-ports': like<WorkEffects['releasePorts']>(key => void model.ports.delete(key)),
  'workspace.create': like<WorkEffects['createWorkspace']>(order => createWorkspace(model, order)),
  'workspace.reset': like<WorkEffects['resetWorkspace']>(({ path, base }) => {
    markSetUp(model, path, false);
    resetWorkspace(model, { path, commit: base });
  }),
  'workspace.mark-set-up': like<WorkEffects['markSetUp']>(({ path, done }) => markSetUp(model, path, done)),
  'workspace.commit': like<WorkEffects['saveWork']>(request => saveWork(model, request)),
  'workspace.verify-unchanged': like<WorkEffects['changesIn']>(folder => changesIn(model, folder)),
  'workspace.changes': like<WorkEffects['patchOf']>(request => patchOf(model, request)),
  'artifacts.collect': like<WorkEffects['collectArtifacts']>(({ runId, unit, folder, rules }) => {
    const worktree = thereAt(model, folder);
    return rules.map(rule => {
      if (!model.trees.fileAt(worktree.files, rule.path))
        throw new RepriseError(
          'ARTIFACT_INVALID',
          `the artifact \`${rule.name}\` is missing: there is no ${rule.path} in ${folder}`,
        );
      const file = artifactFile(artifactFolder(environment, { runId, unit }), rule);
      return { name: rule.name, path: relative(environment.projectRoot, file) };
    });
  }),
  'scratch.write': like<WorkEffects['writeScratch']>(order => scratchFolder(environment, order)),
  'scratch.remove': like<WorkEffects['removeScratch']>(() => {}),
});

/** The steps of a landing, done to a model. What has to pass is run as ever, in a checkout of the model. */
export function landingOnModel(model: Model, environment: Environment): ModelEffects {
  const { self, isAlive, store } = environment;
  const ownerOf = ({ incarnation }: Lease) => ({ ...self, incarnation });
  /** Of this process: another one that goes on with the same landing has a lock of its own. */
  const locks = new Map<string, number>();
  const asked = (order: MoveOrder) => ({ held: locks.get(order.key), mayLand: () => mayLand(store, order) });
  return {
    'land.lock': like<WorkEffects['lockLanding']>(
      order => {
        const locked = lockLanding(model, order, { owner: ownerOf(order.lease), isAlive });
        locks.set(order.key, locked.token);
        return locked;
      },
      () => isLandingFree(model, isAlive),
    ),
    'land.prepare': like<WorkEffects['prepareLanding']>(order => prepareLanding(model, order)),
    'land.verify': like<WorkEffects['verifyLanding']>((order, { signal }) =>
      verifyLanding(model, order, verificationOf({ environment, observe: () => {}, order, signal })),
    ),
    'land.move': like<WorkEffects['moveLanding']>(order => moveLanding(model, order, asked(order))),
    'land.confirm': like<WorkEffects['confirmLanding']>(order => confirmLanding(model, order, asked(order))),
    'land.unlock': like<WorkEffects['unlockLanding']>(key => {
      unlockLanding(model, locks.get(key));
      locks.delete(key);
    }),
  };
}

/** What workers do with git and files, done to a model. */
const workersOnModel = (model: Model): ModelEffects => ({
  'task.mark': like<WorkerEffects['markTask']>(({ folder, file, state }) => {
    const worktree = thereAt(model, folder);
    const entry = model.trees.fileAt(worktree.files, file);
    const marked = entry && withState(model.objects.text(entry.id), state);
    if (!entry || marked === undefined) return;
    const files = model.trees.with(worktree.files, file, { ...entry, id: model.objects.addBlob(marked) });
    model.change(worktree, { files });
  }),
  'conflict.lay-out': like<WorkerEffects['beginSolving']>(order => layOut(model, order)),
  'conflict.take-solution': like<WorkerEffects['goOnSolving']>(order => takeSolution(model, order)),
  'conflict.give-up': like<WorkerEffects['stopSolving']>(order => giveUp(model, order)),
  'checkout.cleared': like<WorkerEffects['checkoutCleared']>(
    () => {},
    ({ path, files }) => !hasChanged(model, path, files),
  ),
  'work.save': like<WorkerEffects['saveLeft']>(request => void saveWork(model, request)),
  'work.park': like<WorkerEffects['park']>(order => keepOnBranch(model, 'parked', order)),
  'work.deliver': like<WorkerEffects['deliver']>(order => keepOnBranch(model, 'task', order)),
  'git.push': like<WorkerEffects['push']>(({ branch, commit }) => void model.pushed.set(branch, commit)),
  'workspace.remove': like<WorkerEffects['removeWorkspace']>(order => removeWorkspace(model, order)),
  'tasks.list': like<WorkerEffects['listTasks']>(() => {
    throw new RepriseError('INTERNAL', 'the model of a repository runs no command that lists tasks', {
      hint: 'explore the case on real git: --on git',
    });
  }),
});

function hasChanged(model: Model, path: string, files: readonly string[]): boolean {
  const worktree = model.worktreeAt(path);
  return worktree !== undefined && model.uncommitted(worktree).some(file => files.includes(file));
}

/** What an effect does in a model. Its arguments and its result are those of the real one. */
interface PerformOnModel {
  readonly perform: (args: never, cancellation: Cancellation) => unknown;
  /** Of one that waits: whether what it waits for has come. */
  readonly isOver?: ((args: never) => boolean) | undefined;
}

type ModelEffects = Readonly<Record<string, PerformOnModel>>;

/**
 * Their names begin like this: behind them there is nothing of git or files, or only what something stands in for that the
 * surroundings of a command give: the store, sessions, shells, and what is read of branches. The places of agents are
 * files all the same: they are few and small, and who may take one from whom is better asked of the real thing.
 */
const withoutFiles = [
  ...['clock.', 'ids.', 'keyboard.', 'mail.', 'lane.', 'receipt.', 'function.'],
  ...['store.', 'inbox.', 'claim.', 'claims.', 'worker.', 'workers.', 'runs.'],
  ...['session.', 'shell.', 'tasks.read', 'main_head_sha', 'agent.'],
];

export const needsModel = (name: string): boolean => !withoutFiles.some(start => name.startsWith(start));

/**
 * A world in which everything that touches git or files is done to a model instead. Who asks cannot tell. `onMissing` is
 * told of an effect that the model does not have: whoever asked for it may go on regardless.
 */
export const modelled = (
  world: World,
  effects: ModelEffects,
  onMissing: (error: RepriseError) => void,
): World => ({
  open: (lane, body) => world.open(lane, body),
  effect: definition => world.effect(onModel(definition, { effects, onMissing })),
  fork: body => world.fork(body),
  join: lanes => world.join(lanes),
  cancel: lanes => world.cancel(lanes),
  mailbox: (name, options) => world.mailbox(name, options),
});

function onModel<Args, Result>(
  definition: EffectDefinition<Args, Result>,
  {
    effects,
    onMissing,
  }: { readonly effects: ModelEffects; readonly onMissing: (error: RepriseError) => void },
): EffectDefinition<Args, Result> {
  const { name, awaits } = definition;
  const instead = effects[name];
  if (instead) {
    const { isOver } = instead;
    return {
      ...definition,
      perform: instead.perform as EffectDefinition<Args, Result>['perform'],
      ...(awaits && isOver ? { awaits: { ...awaits, isOver: isOver as typeof awaits.isOver } } : {}),
    };
  }
  if (!needsModel(name)) return definition;
  return {
    ...definition,
    perform: () => {
      const error = notModelled(name);
      onMissing(error);
      throw error;
    },
  };
}

const notModelled = (name: string): RepriseError =>
  new RepriseError('INTERNAL', `the effect ${name} touches git or files, and the model does not have it`, {
    hint: 'explore the case on real git: --on git',
  });

interface InModelOptions {
  readonly model: Model;
  /** Told of what the model does not have, which whoever asked for it may have swallowed. */
  readonly onMissing: (error: RepriseError) => void;
}

/** The surroundings of a command that works in a model: all that it does to git is done there. For `Host.surround`. */
export const inModel =
  ({ model, onMissing }: InModelOptions) =>
  (environment: Environment): Environment => {
    const effects = effectsOnModel(model, environment);
    const branches = branchesIn(model);
    const world = modelled(environment.world, effects, onMissing);
    return { ...environment, world, branches, openLog: noLog };
  };

/** All that a model does in place of git and files. */
export const effectsOnModel = (model: Model, environment: Environment): ModelEffects => ({
  ...engineOnModel(model, environment),
  ...landingOnModel(model, environment),
  ...workersOnModel(model),
});

/** Makes all known to the model that recordings name, so that what they did can be done there. Once for each case. */
export const learnRecordings = (
  model: Model,
  {
    repository,
    recordings,
    blob,
  }: {
    readonly repository: Repository;
    readonly recordings: readonly Recording[];
    readonly blob: (sha256: string) => Uint8Array;
  },
): Promise<void> => {
  const names = new Set(recordings.flatMap(({ pack }) => pack ?? []));
  return loadPacks(repository, [...names].map(blob), model.objects);
};

/** For `DeltaOptions.applyInstead`. */
export const applyInModel =
  (model: Model): ApplyRecorded =>
  ({ before, after }, folder) =>
    before && after ? carryOut(model, folder, { before, after }) : { kind: 'exact' };
