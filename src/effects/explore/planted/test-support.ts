import type { World } from '../../world.ts';
import type { ExploredProgram } from '../test-support.ts';

export type Planted = 'nothing' | 'claim' | 'land' | 'steal' | 'deadlock' | 'lease';

/** Three workers that each claim a task, work on it and land it, with a planted bug. */
export const workers =
  (planted: Planted, names: readonly string[] = ['a', 'b', 'c']): ExploredProgram =>
  (world, { now }) => {
    const board = new Map(names.map((_, index) => [`t${index}`, '']));
    const held = new Map<string, string>();
    const bases = new Map<string, number>();
    let main: readonly string[] = [];
    let lease: { readonly by: string; readonly until: number } | undefined;
    const at = effects(world);
    const lock = (name: string, by: string) =>
      at.wait(
        `lock ${name}`,
        `lock ${name}`,
        () => !held.has(name),
        () => held.set(name, by),
      );
    const unlock = (name: string) => at.write(`unlock ${name}`, `lock ${name}`, () => held.delete(name));
    const sleep = world.effect<number, void>({ name: 'clock.sleep', span: 'long', perform: () => {} });
    const time = world.effect<void, number>({ name: 'clock.now', span: 'short', perform: now });

    const pick = async (by: string) => {
      const free = await at.read('board.read', 'board', () => [...board].find(([, owner]) => !owner)?.[0]);
      if (free === undefined) throw new Error(`${by} found no task`);
      await at.write('board.claim', 'board', () => board.set(free, by));
      return free;
    };
    const leased = async (by: string) => {
      await at.wait(
        'lease.take',
        'lease',
        () => !lease,
        () => 0,
      );
      const moment = await time();
      await at.write('lease.write', 'lease', () => {
        lease = { by, until: moment + 30 };
      });
    };
    /** The bug: an expired lease is taken over, and the old holder does not check. */
    const expire = async () => {
      await sleep(31);
      await at.write('lease.expire', 'lease', () => {
        lease = undefined;
      });
    };
    const dispatch = async (by: string) => {
      if (planted === 'claim') return pick(by);
      if (planted === 'lease') {
        await leased(by);
        const task = await pick(by);
        await at.write('lease.give', 'lease', () => {
          if (lease?.by === by) lease = undefined;
        });
        return task;
      }
      if (planted === 'steal') return stealing(by);
      await lock('dispatch', by);
      const task = await pick(by);
      await unlock('dispatch');
      return task;
    };
    const busy = new Set<string>();
    let lockFile = '';
    /** The bug: a lock that looks stale is broken, although another worker may have taken it since. */
    const stealing = async (by: string) => {
      await at.write('enter', `process ${by}`, () => busy.add(by));
      for (;;) {
        const isTaken = await at.write('file.try', 'file', () => {
          if (lockFile !== '') return false;
          lockFile = by;
          return true;
        });
        if (isTaken) break;
        const owner = await at.read('file.owner', 'file', () => lockFile);
        if (owner === '') continue;
        if (!(await at.read('process.alive', `process ${owner}`, () => busy.has(owner))))
          await at.write('file.break', 'file', () => {
            lockFile = '';
          });
        else
          await at.wait(
            'file.wait',
            'file',
            () => lockFile !== owner,
            () => 0,
          );
      }
      const task = await pick(by);
      await at.write('leave', `process ${by}`, () => busy.delete(by));
      await at.write('file.free', 'file', () => {
        if (lockFile === by) lockFile = '';
      });
      return task;
    };
    const land = async (by: string, task: string) => {
      // Gives up silently after two attempts.
      for (let left = 2; left > 0; left--) {
        await at.read('rebase', 'main', () => bases.set(by, main.length));
        const hasLanded = await at.write('main.move', 'main', () => {
          if (bases.get(by) !== main.length) return false;
          main = [...main, task];
          return true;
        });
        if (hasLanded) return;
      }
    };
    const worker = (by: string) => async () => {
      const task = await dispatch(by);
      await at.write('commit', `worktree ${by}`, () => undefined);
      const locks =
        planted === 'deadlock' ? (by === 'a' ? ['land', 'dispatch'] : ['dispatch', 'land']) : ['land'];
      if (planted !== 'land') for (const name of locks) await lock(name, by);
      await land(by, task);
      if (planted !== 'land') for (const name of locks) await unlock(name);
    };
    return {
      lanes: {
        ...Object.fromEntries(names.map(name => [name, worker(name)])),
        ...(planted === 'lease' ? { expiry: expire } : {}),
      },
      check: () => {
        const [landed, wanted] = [main.toSorted().join(), [...board.keys()].join()];
        return landed === wanted ? undefined : `landed ${landed}, wanted ${wanted}`;
      },
    };
  };

function effects(world: World) {
  const short = <T>(name: string, keys: object, perform: () => T, enabled?: () => boolean): Promise<T> =>
    world.effect<void, T>({
      name,
      span: 'short',
      keys: () => keys,
      perform,
      ...(enabled ? { enabled } : {}),
    })();
  return {
    read: <T>(name: string, key: string, perform: () => T) => short(name, { reads: [key] }, perform),
    write: <T>(name: string, key: string, perform: () => T) => short(name, { writes: [key] }, perform),
    wait: <T>(name: string, key: string, until: () => boolean, perform: () => T) =>
      short(name, { writes: [key] }, perform, until),
  };
}
