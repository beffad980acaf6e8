import fc from 'fast-check';
import type { World } from '../../world.ts';
import {
  areDependent,
  type Move,
  type Perform,
  type Performed,
  type Point,
  ScheduleCut,
} from '../schedule.ts';
import type { Explored } from '../test-support.ts';

/** An action of a lane in a small program. */
export type Deed =
  | { readonly do: 'read' | 'add' | 'double'; readonly key: string }
  /** Does `ifOdd` only if the value is odd. */
  | { readonly do: 'branch'; readonly key: string; readonly ifOdd: Deed }
  | { readonly do: 'locked'; readonly key: string; readonly body: readonly Deed[] }
  | { readonly do: 'send' | 'receive'; readonly box: string }
  | { readonly do: 'take' | 'give' }
  | { readonly do: 'session'; readonly key: string }
  | { readonly do: 'sleep'; readonly ms: number }
  | { readonly do: 'fork'; readonly body: readonly Deed[] }
  | { readonly do: 'cancel' };

export type SmallProgram = readonly (readonly Deed[])[];

const simple: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({
    do: fc.constantFrom('read' as const, 'add' as const, 'double' as const),
    key: fc.constantFrom('x', 'y', 'all:', 'all:1'),
  }),
  fc.record({ do: fc.constantFrom('send' as const, 'receive' as const), box: fc.constantFrom('in', 'out') }),
  fc.record({ do: fc.constantFrom('take' as const, 'give' as const) }),
  fc.record({ do: fc.constant('session' as const), key: fc.constantFrom('x', 'own') }),
  fc.record({ do: fc.constant('sleep' as const), ms: fc.constantFrom(5, 10) }),
  fc.record({ do: fc.constant('cancel' as const) }),
);

const deed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 6, arbitrary: simple },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('branch' as const), key: fc.constant('x'), ifOdd: simple }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('locked' as const),
      key: fc.constantFrom('m', 'n'),
      body: fc.array(simple, { maxLength: 2 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('fork' as const),
      body: fc.array(simple, { minLength: 1, maxLength: 2 }),
    }),
  },
);

/** Two or three lanes with shared values, locks, a semaphore, mail, sessions, sleeps, forks and cancels. */
export const smallPrograms: fc.Arbitrary<SmallProgram> = fc.array(
  fc.array(deed, { minLength: 1, maxLength: 3 }),
  { minLength: 2, maxLength: 3 },
);

/** Two or three identical lanes. */
export const twins: fc.Arbitrary<SmallProgram> = fc
  .tuple(fc.constantFrom(2, 2, 3), fc.array(deed, { minLength: 1, maxLength: 3 }))
  .map(([count, effects]) => Array.from({ length: count }, () => effects));

/** Creates the lanes of the program. `state` returns everything that they observed, as one string. */
export function explored(program: SmallProgram, world: World): Explored & { readonly state: () => string } {
  const values = new Map<string, number>();
  const held = new Set<string>();
  let slots = 1;
  const seen: Record<string, unknown[]> = {};
  const boxes = { in: world.mailbox<string>('in'), out: world.mailbox<string>('out') };
  const value = (key: string) => values.get(key) ?? 0;
  const read = world.effect<string, number>({
    name: 'read',
    span: 'short',
    keys: key => ({ reads: [key] }),
    perform: key => (key.endsWith(':') ? value(key) + value(`${key}1`) : value(key)),
  });
  const write = world.effect<{ readonly key: string; readonly by: (old: number) => number }, number>({
    name: 'write',
    span: 'short',
    keys: ({ key }) => ({ writes: [key] }),
    perform: ({ key, by }) => {
      values.set(key, by(value(key)));
      if (key.endsWith(':')) values.set(`${key}1`, by(value(`${key}1`)));
      return value(key);
    },
  });
  const lock = world.effect<string, void>({
    name: 'lock',
    span: 'short',
    keys: key => ({ writes: [`lock ${key}`] }),
    enabled: key => !held.has(key),
    perform: key => void held.add(key),
  });
  const unlock = world.effect<string, void>({
    name: 'unlock',
    span: 'short',
    keys: key => ({ writes: [`lock ${key}`] }),
    perform: key => void held.delete(key),
  });
  const take = world.effect<void, void>({
    name: 'take',
    span: 'long',
    awaits: { keys: () => ({ writes: ['slots'] }), isOver: () => slots > 0 },
    perform: () => void slots--,
  });
  const give = world.effect<void, void>({
    name: 'give',
    span: 'short',
    keys: () => ({ writes: ['slots'] }),
    perform: () => void slots++,
  });
  const session = world.effect<string, number>({
    name: 'session',
    span: 'long',
    keys: key => (key === 'own' ? {} : { writes: [key] }),
    perform: key => {
      if (key === 'own') return 0;
      values.set(key, value(key) + 10);
      return value(key);
    },
  });
  const sleep = world.effect<number, void>({ name: 'clock.sleep', span: 'long', perform: () => {} });

  const doAll = async (name: string, effects: readonly Deed[]): Promise<void> => {
    const children: { readonly name: string }[] = [];
    seen[name] ??= [];
    const see = (what: unknown) => seen[name]?.push(what);
    const doOne = async (one: Deed): Promise<void> => {
      switch (one.do) {
        case 'read':
          return void see(await read(one.key));
        case 'add':
          return void see(await write({ key: one.key, by: old => old + 1 }));
        case 'double':
          return void see(await write({ key: one.key, by: old => old * 2 }));
        case 'branch':
          return (await read(one.key)) % 2 === 1 ? doOne(one.ifOdd) : undefined;
        case 'locked':
          await lock(one.key);
          for (const inner of one.body) await doOne(inner);
          return unlock(one.key);
        case 'send':
          return boxes[one.box as 'in'].send(name);
        case 'receive':
          return void see(await boxes[one.box as 'in'].receiveAll());
        case 'take':
          return take();
        case 'give':
          return give();
        case 'session':
          return void see(await session(one.key));
        case 'sleep':
          return sleep(one.ms);
        case 'fork': {
          const child = `${name}/${children.length}`;
          children.push(
            world.fork(() => doAll(child, one.body).catch(() => void seen[child]?.push('cancelled'))),
          );
          return;
        }
        case 'cancel':
          return children.length > 0 ? world.cancel(children) : undefined;
      }
    };
    try {
      for (const one of effects) await doOne(one);
    } finally {
      await world.join(children);
    }
  };
  const lanes = Object.fromEntries(
    program.map((effects, index) => [`l${index}`, () => doAll(`l${index}`, effects)]),
  );
  return { lanes, state: () => JSON.stringify([Object.entries(seen).sort(), [...values].sort()]) };
}

/** Runs every interleaving; returns `undefined` if there are more than `most`. */
export async function enumerate(perform: Perform, most: number): Promise<readonly Performed[] | undefined> {
  const stack: { lanes: readonly string[]; at: number }[] = [];
  const all: Performed[] = [];
  do {
    if (all.length === most) return undefined;
    const choose = ({ n, enabled }: Point) => {
      stack[n] ??= { lanes: enabled.map(({ lane }) => lane), at: 0 };
      const node = stack[n];
      const lane = node.lanes[node.at];
      if (lane === undefined) throw new ScheduleCut();
      return lane;
    };
    all.push(await perform({ isCalm: true, choose }));
    while (stack.length > 0) {
      const node = stack.at(-1);
      if (node && ++node.at < node.lanes.length) break;
      stack.pop();
    }
  } while (stack.length > 0);
  return all;
}

/** Formats the equivalence class of a trace: for each move, the earlier moves that conflict with it. */
export function classText(trace: readonly Move[]): string {
  const counts = new Map<string, number>();
  const names: string[] = [];
  const lines = trace.map((move, n) => {
    const count = counts.get(move.lane) ?? 0;
    counts.set(move.lane, count + 1);
    names.push(`${move.lane}.${count}`);
    const before = names.slice(0, n).filter((_, i) => {
      const earlier = trace[i];
      return earlier && areDependent(earlier, move);
    });
    return `${names[n]} ${move.op}: ${before.sort().join()}`;
  });
  return lines.sort().join('\n');
}
