import type { Environment } from '../../../engine/environment.ts';
import type { WorkEffects } from '../../../engine/work/effects.ts';
import { mayLand } from '../../../engine/work/landing-effects.ts';
import { verificationOf } from '../../../engine/work/landing-verify.ts';
import type { Lease } from '../../../store/port.ts';
import {
  confirmLanding,
  isLandingFree,
  lockLanding,
  moveLanding,
  prepareLanding,
  unlockLanding,
  verifyLanding,
} from './landing.ts';
import { like } from './like.ts';
import type { Model } from './model.ts';
import type { ModelEffects } from './modelled.ts';

/** The steps of a landing, done to a model. What has to pass is run as ever, in a checkout of the model. */
export function landingOnModel(model: Model, environment: Environment): ModelEffects {
  const { self, isAlive, store } = environment;
  const ownerOf = ({ incarnation }: Lease) => ({ ...self, incarnation });
  return {
    'land.lock': like<WorkEffects['lockLanding']>(
      order => lockLanding(model, order, { owner: ownerOf(order.lease), isAlive }),
      () => isLandingFree(model, isAlive),
    ),
    'land.prepare': like<WorkEffects['prepareLanding']>(order => prepareLanding(model, order)),
    'land.verify': like<WorkEffects['verifyLanding']>((order, { signal }) =>
      verifyLanding(model, order, verificationOf({ environment, observe: () => {}, order, signal })),
    ),
    'land.move': like<WorkEffects['moveLanding']>(order =>
      moveLanding(model, order, { mayLand: () => mayLand(store, order) }),
    ),
    'land.confirm': like<WorkEffects['confirmLanding']>(order =>
      confirmLanding(model, order, { mayLand: () => mayLand(store, order) }),
    ),
    'land.unlock': like<WorkEffects['unlockLanding']>(key => unlockLanding(model, key)),
  };
}
