import { RepriseError } from '../../../core/errors.ts';
import type { Cancellation, EffectDefinition } from '../../../effects/effect.ts';
import type { World } from '../../../effects/world.ts';

/** What an effect does in a model. Its arguments and its result are those of the real one. */
export interface PerformOnModel {
  readonly perform: (args: never, cancellation: Cancellation) => unknown;
  /** Of one that waits: whether what it waits for has come. */
  readonly isOver?: ((args: never) => boolean) | undefined;
}

export type ModelEffects = Readonly<Record<string, PerformOnModel>>;

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
