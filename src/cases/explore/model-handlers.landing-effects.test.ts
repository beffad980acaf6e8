import { expect, it } from 'vitest';
import type { Environment } from '../../engine/environment.ts';
import { Model } from '../../git/model/repository.ts';
import { landingOnModel } from './model-handlers.ts';

const processOf = (model: Model) => {
  const self = { pid: 1, processStart: '1', host: 'here' };
  const effects = landingOnModel(model, { self, isAlive: () => true } as unknown as Environment);
  const perform = (name: string, args: unknown) => effects[name]?.perform(args as never, {} as never);
  return {
    lock: (key: string, incarnation: string) =>
      perform('land.lock', { key, lease: { epoch: 1, incarnation }, unit: 'land' }),
    unlock: (key: string) => perform('land.unlock', key),
    isFree: () => effects['land.lock']?.isOver?.({} as never),
  };
};

it('a process that takes over a landing keeps its lock when the former owner unlocks', () => {
  const model = new Model();
  const [former, present] = [processOf(model), processOf(model)];
  former.lock('run:land', 'former');
  former.unlock('run:land');
  present.lock('run:land', 'present');
  former.unlock('run:land');
  expect(former.isFree()).toBe(false);
  present.unlock('run:land');
  expect(former.isFree()).toBe(true);
});
