import type { Environment } from '../../../engine/environment.ts';
import type { WorkEffects } from '../../../engine/step/effects.ts';
import { mayLand, verificationOf } from '../../../engine/step/landing-effects.ts';
import {
  confirmLanding,
  isLandingFree,
  lockLanding,
  moveLanding,
  prepareLanding,
  unlockLanding,
  verifyLanding,
} from '../../../git/model/landing.ts';
import type { Model } from '../../../git/model/repository.ts';
import type { MoveOrder } from '../../../git/orders.ts';
import type { Lease } from '../../../store/port.ts';
import { like } from './like.ts';
import type { ModelEffects } from './modelled.ts';

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
