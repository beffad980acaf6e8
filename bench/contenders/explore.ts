import { search } from '../../src/effects/explore/search.ts';
import { type ExploredWorld, performingSetup } from '../../src/testing/explored-world.ts';
import { coldAndWarm, contend } from '../lib/contend.ts';

/** Three workers that claim and land under locks, with private work in between: 33 effects per schedule. */
function workers({ effect, lane }: ExploredWorld) {
  const held = new Set<string>();
  const lock = effect({
    name: 'lock',
    writes: (name: string) => [`lock ${name}`],
    when: name => !held.has(name),
    perform: name => void held.add(name),
  });
  const unlock = effect({
    name: 'unlock',
    writes: (name: string) => [`lock ${name}`],
    perform: name => void held.delete(name),
  });
  const read = effect({ name: 'read', reads: (key: string) => [key], perform: () => 0 });
  const write = effect({ name: 'write', writes: (key: string) => [key], perform: () => 0 });
  const work = effect({ name: 'work', perform: () => 0 });
  const worker = async () => {
    await lock('dispatch');
    await read('board');
    await write('board');
    await unlock('dispatch');
    for (let left = 3; left > 0; left--) await work();
    await lock('land');
    await read('main');
    await write('main');
    await unlock('land');
  };
  for (const name of ['a', 'b', 'c']) lane(name, worker);
}

export const methods = {
  'in-memory': async (_folder: string, policy: 'random' | 'dpor', schedules: number) => {
    let result: Awaited<ReturnType<typeof search>> | undefined;
    const times = await coldAndWarm(async round => {
      result = await search(performingSetup(workers), {
        policy,
        schedules,
        seed: 1 + round * schedules,
      });
      if (result.failure) throw new Error(JSON.stringify(result.failure.performed.verdict));
    });
    if (!result) throw new Error('nothing was explored');
    const { entries, schedules: performed, cut } = result;
    return { ...times, entries, schedules: performed + cut };
  },
};

await contend(methods);
