import { RepriseError } from '../../core/index.ts';
import type { Cancellation, EffectDefinition, World } from '../../effects/index.ts';
import { type EngineEffects, type Environment, recordedPath } from '../../engine/index.ts';
import type { RecordedActivity } from '../../engine/recording/index.ts';
import {
  artifactFile,
  artifactFolder,
  mayLand,
  requireOwner,
  type StepWork,
  scratchFolder,
  verificationOf,
  type WorkEffects,
} from '../../engine/step/index.ts';
import type { MoveOrder, Repository } from '../../git/index.ts';
import {
  branchesIn,
  changesIn,
  confirmLanding,
  createWorkspace,
  giveUp,
  isLandingFree,
  keepOnBranch,
  layOut,
  loadPacks,
  lockLanding,
  type Model,
  markSetUp,
  moveLanding,
  patchOf,
  prepareLanding,
  removeWorkspace,
  resetWorkspace,
  resolveBase,
  saveWork,
  takePorts,
  takeSolution,
  thereAt,
  unlockLanding,
  verifyLanding,
} from '../../git/model/index.ts';
import { noLog } from '../../process/index.ts';
import type { Fence, Lease } from '../../store/index.ts';
import type { WorkerEffects } from '../../worker/index.ts';
import { withState } from '../../worker/tasks/index.ts';
import type { ApplyRecorded } from '../replay/serve-session.ts';
import { carryOut } from './model-sessions.ts';

type AnyEffect = (args: never) => Promise<unknown>;
type Result<E extends AnyEffect> = Awaited<ReturnType<E>>;

/** Types a model handler with the arguments and the result of the real effect. */
const like = <E extends AnyEffect>(
  perform: (args: Parameters<E>[0], cancellation: Cancellation) => Result<E> | Promise<Result<E>>,
  isOver?: (args: Parameters<E>[0]) => boolean,
): PerformOnModel => ({ perform, ...(isOver ? { isOver } : {}) });

/** Engine effects on git and files, performed on a model. */
const engineOnModel = (
  model: Model,
  environment: Pick<Environment, 'projectRoot' | 'stateDir' | 'worktrees'>,
): ModelEffects => ({
  'git.base': like<StepWork['pinBase']>(() => {
    const root = thereAt(model, environment.projectRoot);
    const commit = resolveBase(model, 'HEAD');
    return { ref: root.head.kind === 'branch' ? root.head.branch : 'HEAD', commit };
  }),
  /** A model starts no processes, so there are no orphans. */
  'process.end-orphans': like<EngineEffects['endOrphans']>(() => 0),
  'workspace.base': like<WorkEffects['resolveBase']>(name => resolveBase(model, name)),
  'workspace.tip': like<WorkEffects['tipOfBranch']>(branch => model.tip(branch) ?? null),
  'workspace.lost': like<StepWork['lostBranches']>(works =>
    works.flatMap(({ branch }) => (model.tip(branch) === undefined ? branch : [])),
  ),
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
          `artifact \`${rule.name}\` is missing: no file ${rule.path} in ${folder}`,
        );
      const file = artifactFile(artifactFolder(environment, { runId, unit }), rule);
      return {
        name: rule.name,
        path: recordedPath({ root: environment.projectRoot, stateDir: environment.stateDir }, file),
      };
    });
  }),
  'scratch.write': like<WorkEffects['writeScratch']>(order => scratchFolder(environment, order)),
  'scratch.remove': like<WorkEffects['removeScratch']>(() => {}),
});

/** Landing effects, performed on a model. Verification really runs, in a checkout of the model. */
export function landingOnModel(model: Model, environment: Environment): ModelEffects {
  const { self, isAlive, store } = environment;
  const ownerOf = ({ incarnation }: Lease) => ({ ...self, incarnation });
  /** Lock tokens of this process, by landing. A process that takes over the same landing has its own token. */
  const locks = new Map<string, number>();
  const checksOf = (order: MoveOrder) => ({
    held: locks.get(order.key),
    mayLand: () => mayLand(store, order),
  });
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
    'land.move': like<WorkEffects['moveLanding']>(order => moveLanding(model, order, checksOf(order))),
    'land.confirm': like<WorkEffects['confirmLanding']>(order =>
      confirmLanding(model, order, checksOf(order)),
    ),
    'land.unlock': like<WorkEffects['unlockLanding']>(key => {
      unlockLanding(model, locks.get(key));
      locks.delete(key);
    }),
  };
}

/** Worker effects on git and files, performed on a model. */
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
  'conflict.take-solution': like<WorkerEffects['continueSolving']>(order => takeSolution(model, order)),
  'conflict.give-up': like<WorkerEffects['stopSolving']>(order => giveUp(model, order)),
  'checkout.cleared': like<WorkerEffects['checkoutCleared']>(
    () => {},
    ({ path, files }) => !hasChanged(model, path, files),
  ),
  'work.save': like<WorkerEffects['saveUnfinished']>(request => void saveWork(model, request)),
  'work.park': like<WorkerEffects['park']>(order => keepOnBranch(model, 'parked', order)),
  'work.deliver': like<WorkerEffects['deliver']>(order => keepOnBranch(model, 'task', order)),
  'git.push': like<WorkerEffects['push']>(({ branch, commit }) => void model.pushed.set(branch, commit)),
  'workspace.remove': like<WorkerEffects['removeWorkspace']>(order => removeWorkspace(model, order)),
  'tasks.list': like<WorkerEffects['listTasks']>(() => {
    throw new RepriseError('INTERNAL', 'the in-memory model cannot run the command that lists tasks', {
      hint: 'explore the case on real git: pass --on git',
    });
  }),
});

function hasChanged(model: Model, path: string, files: readonly string[]): boolean {
  const worktree = model.worktreeAt(path);
  return worktree !== undefined && model.uncommitted(worktree).some(file => files.includes(file));
}

/** Handler of an effect on a model, with the arguments and the result of the real effect. */
interface PerformOnModel {
  readonly perform: (args: never, cancellation: Cancellation) => unknown;
  /** For an effect that waits: whether its condition holds. */
  readonly isOver?: ((args: never) => boolean) | undefined;
}

type ModelEffects = Readonly<Record<string, PerformOnModel>>;

/**
 * Name prefixes of effects that need no model: they touch neither git nor files, or the host replaces what they use (the
 * store, sessions, shells and branch reads). Agent slots remain real files: they are few and small, and the real code
 * decides best who may take one over.
 */
const withoutFiles = [
  ...['clock.', 'ids.', 'keyboard.', 'mail.', 'lane.', 'receipt.', 'function.'],
  ...['store.', 'inbox.', 'claim.', 'claims.', 'worker.', 'workers.', 'runs.'],
  ...['session.', 'shell.', 'tasks.read', 'main_head_sha', 'agent.'],
];

export const needsModel = (name: string): boolean => !withoutFiles.some(start => name.startsWith(start));

/**
 * Wraps a world so that effects on git and files are performed on a model. An effect without a model handler throws;
 * `onMissing` receives the error as well, because the caller may ignore it.
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
  const handler = effects[name];
  if (handler) {
    const { isOver } = handler;
    return {
      ...definition,
      perform: handler.perform as EffectDefinition<Args, Result>['perform'],
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
  new RepriseError('INTERNAL', `the in-memory model does not support the effect ${name}`, {
    hint: 'explore the case on real git: pass --on git',
  });

interface InModelOptions {
  readonly model: Model;
  /** Receives the error of each effect that the model does not support, because its caller may ignore the error. */
  readonly onMissing: (error: RepriseError) => void;
}

/** Returns a `Host.surround` that redirects the git and file effects of a command to a model. */
export const inModel =
  ({ model, onMissing }: InModelOptions) =>
  (environment: Environment): Environment => {
    const effects = effectsOnModel(model, environment);
    const branches = branchesIn(model);
    const world = modelled(environment.world, effects, onMissing);
    return { ...environment, world, branches, openLog: noLog };
  };

/** All effects that are performed on a model. */
export const effectsOnModel = (model: Model, environment: Environment): ModelEffects => ({
  ...owned(engineOnModel(model, environment), environment),
  ...landingOnModel(model, environment),
  ...owned(workersOnModel(model), environment),
});

/** Makes handlers prove ownership as the real effects do. */
const owned = (effects: ModelEffects, { store }: Environment): ModelEffects =>
  Object.fromEntries(
    Object.entries(effects).map(([name, handler]) => [
      name,
      {
        ...handler,
        perform: async (args: never, cancellation: Cancellation) => {
          const fence = fenceIn(args);
          if (fence) await requireOwner(store, fence);
          return handler.perform(args, cancellation);
        },
      },
    ]),
  );

/** Proof of ownership among the arguments of an effect. */
function fenceIn(args: unknown): Fence | undefined {
  if (typeof args !== 'object' || args === null) return undefined;
  if ('fence' in args) return args.fence as Fence | undefined;
  return 'runId' in args && 'lease' in args ? (args as Fence) : undefined;
}

/** Loads the git objects of all recordings into the model, so that recorded changes can be applied. Once per case. */
export const learnRecordings = (
  model: Model,
  {
    repository,
    recordings,
    blob,
  }: {
    readonly repository: Repository;
    readonly recordings: readonly RecordedActivity[];
    readonly blob: (sha256: string) => Uint8Array;
  },
): Promise<void> => {
  const names = new Set(recordings.flatMap(({ pack }) => pack ?? []));
  return loadPacks(repository, [...names].map(blob), model.objects);
};

/** Applies recorded changes to a model; used as `DeltaOptions.applyInstead`. */
export const applyInModel =
  (model: Model): ApplyRecorded =>
  ({ before, after }, folder) =>
    before && after ? carryOut(model, folder, { before, after }) : { kind: 'exact' };
