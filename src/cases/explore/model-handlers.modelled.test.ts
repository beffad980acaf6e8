import { describe, expect, it } from 'vitest';
import type { RepriseError } from '../../core/errors.ts';
import type { EffectDefinition } from '../../effects/effect.ts';
import { createLiveWorld } from '../../effects/live-world.ts';
import { createEffects } from '../../engine/effects.ts';
import type { Environment } from '../../engine/environment.ts';
import { createWork } from '../../engine/step/work.ts';
import { Model } from '../../git/model/repository.ts';
import { createWorkerEffects } from '../../worker/effects/effects.ts';
import { effectsOnModel, modelled, needsModel } from './model-handlers.ts';

/** Collects the effects that engines and workers declare. */
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
  const fake = environment as unknown as Environment;
  createEffects(fake, () => {});
  createWork(fake, () => {});
  createWorkerEffects(fake, { branch: 'main', tasks: { kind: 'folder', folder: 'issues' } } as never);
  return declared;
}

const effects = effectsOnModel(new Model(), {} as Environment);

describe('effects on a model', () => {
  it('cover exactly the declared effects that touch git or files', () => {
    const declared = declaredEffects().map(({ name }) => name);
    const needed = [...new Set(declared.filter(needsModel))].sort();
    expect(needed).toEqual(Object.keys(effects).sort());
  });

  it('can be awaited exactly where the real ones can', () => {
    const waits = declaredEffects().filter(({ awaits }) => awaits);
    const waiting = waits.map(({ name }) => name).filter(needsModel);
    const modelledWaits = Object.entries(effects).flatMap(([name, { isOver }]) => (isOver ? name : []));
    expect(modelledWaits.sort()).toEqual(waiting.sort());
  });

  it('replace the real effect', async () => {
    const world = modelled(createLiveWorld(), { 'git.base': { perform: () => 'modelled' } }, () => {});
    const base = world.effect<void, string>({ name: 'git.base', span: 'short', perform: () => 'real' });
    expect(await world.open('lane', () => base())).toBe('modelled');
  });

  it('report a missing effect even if the lane ignores the error', async () => {
    const missing: RepriseError[] = [];
    const world = modelled(createLiveWorld(), {}, error => missing.push(error));
    const push = world.effect<void, string>({ name: 'git.push', span: 'long', perform: () => 'real' });
    await world.open('lane', () => push().catch(() => {}));
    expect(missing.map(({ message }) => message)).toEqual([
      'the in-memory model does not support the effect git.push',
    ]);
  });

  it('do not replace an effect that touches neither git nor files', async () => {
    const world = modelled(createLiveWorld(), {}, () => {});
    const now = world.effect<void, number>({ name: 'clock.now', span: 'short', perform: () => 5 });
    expect(await world.open('lane', () => now())).toBe(5);
  });
});
