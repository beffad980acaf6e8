import { describe, expect, it } from 'vitest';
import type { RepriseError } from '../../core/errors.ts';
import type { EffectDefinition } from '../../effects/effect.ts';
import { createLiveWorld } from '../../effects/live-world.ts';
import { createEffects } from '../../engine/effects.ts';
import type { Environment } from '../../engine/environment.ts';
import { createWork } from '../../engine/step/index.ts';
import { Model } from '../../git/model/repository.ts';
import { createWorkerEffects } from '../../worker/effects/index.ts';
import { effectsOnModel, modelled, needsModel } from './model-handlers.ts';

/** All that engines and workers declare, by asking them to. */
function declaredEffects(): readonly EffectDefinition<unknown, unknown>[] {
  const declared: EffectDefinition<unknown, unknown>[] = [];
  const live = createLiveWorld();
  const world = {
    ...live,
    effect: (definition: never) => {
      declared.push(definition);
      return live.effect(definition);
    },
  };
  const environment = { world, settings: {}, worktrees: {}, projectRoot: '/repo', stateDir: '/state' };
  const given = environment as unknown as Environment;
  createEffects(given, () => {});
  createWork(given, () => {});
  createWorkerEffects(given, { branch: 'main', tasks: { kind: 'folder', folder: 'issues' } } as never);
  return declared;
}

const effects = effectsOnModel(new Model(), {} as Environment);

describe('effects on a model', () => {
  it('are there for all that touches git or files, and for nothing that does not exist', () => {
    const declared = declaredEffects().map(({ name }) => name);
    const needed = [...new Set(declared.filter(needsModel))].sort();
    expect(needed).toEqual(Object.keys(effects).sort());
  });

  it('can be waited for exactly where the real ones can', () => {
    const waits = declaredEffects().filter(({ awaits }) => awaits);
    const waiting = waits.map(({ name }) => name).filter(needsModel);
    const modelledWaits = Object.entries(effects).flatMap(([name, { isOver }]) => (isOver ? name : []));
    expect(modelledWaits.sort()).toEqual(waiting.sort());
  });

  it('stand in without the lane noticing', async () => {
    const world = modelled(createLiveWorld(), { 'git.base': { perform: () => 'modelled' } }, () => {});
    const base = world.effect<void, string>({ name: 'git.base', span: 'short', perform: () => 'real' });
    expect(await world.open('lane', () => base())).toBe('modelled');
  });

  it('name what is missing, also if the lane goes on regardless', async () => {
    const missing: RepriseError[] = [];
    const world = modelled(createLiveWorld(), {}, error => missing.push(error));
    const push = world.effect<void, string>({ name: 'git.push', span: 'long', perform: () => 'real' });
    await world.open('lane', () => push().catch(() => {}));
    expect(missing.map(({ message }) => message)).toEqual([
      'the effect git.push touches git or files, and the model does not have it',
    ]);
  });

  it('leave alone what has nothing to do with git or files', async () => {
    const world = modelled(createLiveWorld(), {}, () => {});
    const now = world.effect<void, number>({ name: 'clock.now', span: 'short', perform: () => 5 });
    expect(await world.open('lane', () => now())).toBe(5);
  });
});
