import { engineOnModel } from '../../../cases/explore/model-handlers.ts';
import { carryOut } from '../../../cases/explore/model-sessions.ts';
import type { RepriseError } from '../../../core/errors.ts';
import type { Environment } from '../../../engine/environment.ts';
import type { Recording } from '../../../engine/recording/session-file.ts';
import { loadPacks } from '../../../git/model/load.ts';
import { branchesIn, type Model } from '../../../git/model/repository.ts';
import type { Repository } from '../../../git/repository.ts';
import { noLog } from '../../../process/log.ts';
import type { ApplyRecorded } from '../../vcr/deltas.ts';
import { landingOnModel } from './landing-effects.ts';
import { type ModelEffects, modelled } from './modelled.ts';
import { workersOnModel } from './worker-effects.ts';

export interface InModelOptions {
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
