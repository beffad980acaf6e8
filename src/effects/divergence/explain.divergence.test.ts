import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import {
  complaint,
  openOneAfterAnother,
  type Program,
  type ReplayOptions,
  record,
  replay,
} from '../conductor/test-support.ts';
import type { RecordedEntry, Recording } from '../recording/recording.ts';
import type { World } from '../world.ts';

/** A shelf of books behind a key, a reader who takes long, and a lock. */
function library(world: World) {
  const books: string[] = [];
  let isLocked = false;
  return {
    mail: world.mailbox<string>('desk'),
    put: world.effect<{ title: string; pages?: number; note?: string }, number>({
      name: 'shelf.put',
      span: 'short',
      keys: () => ({ writes: ['shelf'] }),
      perform: ({ title }) => books.push(title),
    }),
    count: world.effect<void, { readonly books: number }>({
      name: 'shelf.count',
      span: 'short',
      keys: () => ({ reads: ['shelf'] }),
      perform: () => ({ books: books.length }),
    }),
    read: world.effect<{ title: string }, string>({
      name: 'book.read',
      span: 'long',
      answer: 'tape',
      keys: ({ title }) => ({ writes: [`book:${title}`] }),
      perform: async ({ title }) => `what ${title} says`,
    }),
    lock: world.effect<void, void>({
      name: 'door.lock',
      span: 'short',
      keys: () => ({ writes: ['door'] }),
      enabled: () => !isLocked,
      perform: () => {
        isLocked = true;
      },
    }),
  };
}

type Library = ReturnType<typeof library>;
type Lanes = (library: Library, world: World) => Readonly<Record<string, () => Promise<unknown>>>;

const program =
  (lanes: Lanes): Program =>
  world =>
    lanes(library(world), world);

const sourceRoot = fileURLToPath(new URL('../../..', import.meta.url));
const asFile = ({ lane, i }: RecordedEntry) => `cases/books__${lane.replace('/', '.')}.vcr:${i + 2}`;

/** What the replay of the first with the second complains of; lines of this file are not told. */
async function differing(
  { recorded, now }: { readonly recorded: Lanes; readonly now: Lanes },
  options: Partial<ReplayOptions> & { readonly edit?: (recording: Recording) => Recording } = {},
): Promise<string> {
  const { edit = unchanged => unchanged, ...rest } = options;
  const { recording } = await record(program(recorded));
  const text = await complaint(
    replay(program(now), {
      recording: edit(recording),
      where: asFile,
      rerecord: 'reprise test books --record',
      sourceRoot,
      ...rest,
    }),
  );
  return text.replaceAll(/(\.test\.ts):\d+/g, '$1:<line>');
}

const twoReaders: Lanes = ({ put, read, count }) => ({
  ann: async () => {
    await put({ title: 'Emma' });
    await read({ title: 'Emma' });
    return count();
  },
  bob: async () => {
    await put({ title: 'Dune' });
    return read({ title: 'Dune' });
  },
});

/** Whatever a lane is told, it goes on: nothing of a divergence may reach it. */
const careless = (lanes: Lanes): Lanes => {
  const deaf =
    <Args, Result>(effect: (args: Args) => Promise<Result>) =>
    async (args: Args) => {
      try {
        return await effect(args);
      } catch {
        return undefined as Result;
      }
    };
  return ({ put, read, count, lock, mail }, world) =>
    lanes({ put: deaf(put), read: deaf(read), count: deaf(count), lock: deaf(lock), mail }, world);
};

describe('a replay that differs says how', () => {
  it('a lane that ends before its tape', async () => {
    const now: Lanes = library => ({
      ...twoReaders(library, {} as World),
      ann: () => library.put({ title: 'Emma' }),
    });
    expect(await differing({ recorded: twoReaders, now: careless(now) })).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: lane ann ended, but its tape goes on with 3 entries
        at              step ann, lane ann, i 1 of 4, n 1 of 7
        the score says  bob shelf.put  cases/books__bob.vcr:2
        its tape says   ann book.read.begin  cases/books__ann.vcr:3
        others          bob waits at shelf.put
        before that     0 ann shelf.put
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('a lane that asks for more than is on its tape', async () => {
    const now: Lanes = (library, world) => ({
      ...twoReaders(library, world),
      bob: async () => {
        await library.put({ title: 'Dune' });
        await library.read({ title: 'Dune' });
        await library.put({ title: 'Ulysses' });
      },
    });
    expect(await differing({ recorded: twoReaders, now: careless(now) })).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: lane bob asks for shelf.put, but its tape has ended
        at              step bob, lane bob, i 3 of 3, n 7 of 7
        the score says  nothing more
        the lane asks   bob shelf.put  src/effects/divergence/explain.divergence.test.ts:<line>
        before that     0 ann shelf.put
                        1 bob shelf.put
                        2 ann book.read.begin
                        3 bob book.read.begin
                        4 ann book.read.end
                        5 bob book.read.end
                        6 ann shelf.count
        nearest         bob shelf.put  cases/books__bob.vcr:2, i 0, 3 earlier
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('other arguments', async () => {
    const long = 'x'.repeat(200);
    const recorded: Lanes = ({ put }) => ({
      ann: () => put({ title: 'Emma', pages: 400, note: `${long}a` }),
    });
    const now: Lanes = ({ put }) => ({ ann: () => put({ title: 'Dune', note: `${long}b` }) });
    expect(await differing({ recorded, now: careless(now) })).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: lane ann asks for shelf.put with other arguments than were recorded
        at              step ann, lane ann, i 0 of 1, n 0 of 1
        the score says  ann shelf.put  cases/books__ann.vcr:2
        the lane asks   ann shelf.put  src/effects/divergence/explain.divergence.test.ts:<line>
        difference      args.title: recorded "Emma", now "Dune"
                        args.pages: recorded 400, now nothing
                        args.note: recorded "…xxxxxxxxxxxxxxxxxxxxa", now "…xxxxxxxxxxxxxxxxxxxxb"
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('other keys', async () => {
    const recorded: Lanes = ({ read }) => ({ ann: () => read({ title: 'Emma' }) });
    const edit = ({ entries, witness }: Recording): Recording => ({
      witness,
      entries: entries.map(entry => (entry.keys ? { ...entry, keys: { reads: ['library'] } } : entry)),
    });
    expect(await differing({ recorded, now: careless(recorded) }, { edit })).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: lane ann asks for book.read.begin with other keys than were recorded
        at              step ann, lane ann, i 0 of 2, n 0 of 2
        the score says  ann book.read.begin  cases/books__ann.vcr:2
        the lane asks   ann book.read.begin  src/effects/divergence/explain.divergence.test.ts:<line>
        difference      keys.reads[0]: recorded "library", now nothing
                        keys.writes[0]: recorded nothing, now "book:Emma"
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('another answer', async () => {
    const recorded: Lanes = ({ put, count }) => ({
      ann: async () => {
        await put({ title: 'Emma' });
        return count();
      },
    });
    const edit = ({ entries, witness }: Recording): Recording => ({
      witness,
      entries: entries.map(entry =>
        entry.op === 'shelf.count' ? { ...entry, outcome: { kind: 'ok', value: { books: 7 } } } : entry,
      ),
    });
    expect(await differing({ recorded, now: careless(recorded) }, { edit })).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: shelf.count of lane ann ended otherwise than it was recorded
        at              step ann, lane ann, i 1 of 2, n 1 of 2
        the score says  ann shelf.count  cases/books__ann.vcr:3
        asked from      src/effects/divergence/explain.divergence.test.ts:<line>
        difference      result.books: recorded 7, now 1
        before that     0 ann shelf.put
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('a failure instead of an answer', async () => {
    const recorded: Lanes = ({ count }) => ({ ann: () => count() });
    const edit = ({ entries, witness }: Recording): Recording => ({
      witness,
      entries: entries.map(entry => ({
        ...entry,
        outcome: { kind: 'failed', error: { code: 'GIT_FAILED', message: 'no such branch' } },
      })),
    });
    expect(await differing({ recorded, now: careless(recorded) }, { edit })).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: shelf.count of lane ann ended otherwise than it was recorded
        at              step ann, lane ann, i 0 of 1, n 0 of 1
        the score says  ann shelf.count  cases/books__ann.vcr:2
        asked from      src/effects/divergence/explain.divergence.test.ts:<line>
        difference      end: recorded failed with GIT_FAILED: no such branch, now ok
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('another order', async () => {
    const now: Lanes = (library, world) => ({
      ...twoReaders(library, world),
      ann: async () => {
        await library.put({ title: 'Emma' });
        await library.count();
        await library.read({ title: 'Emma' });
      },
    });
    expect(await differing({ recorded: twoReaders, now: careless(now) })).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: lane ann asks for shelf.count where book.read.begin was recorded
        at              step ann, lane ann, i 1 of 4, n 2 of 7
        the score says  ann book.read.begin  cases/books__ann.vcr:3
        the lane asks   ann shelf.count  src/effects/divergence/explain.divergence.test.ts:<line>
        others          bob waits at book.read.begin
        before that     0 ann shelf.put
                        1 bob shelf.put
        nearest         ann shelf.count  cases/books__ann.vcr:5, i 3, 2 later
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('entries that are left over', async () => {
    const recorded: Lanes = ({ put, read }) => ({
      ann: () => put({ title: 'Emma' }),
      bob: () => read({ title: 'Dune' }),
    });
    const edit = ({ entries, witness }: Recording): Recording => ({
      witness,
      entries: [0, 1, 2].flatMap(n => {
        const entry = entries.toSorted((a, b) => (a.lane < b.lane ? -1 : 1))[n];
        return entry ? [{ ...entry, n }] : [];
      }),
    });
    const now: Lanes = ({ put }) => ({ ann: () => put({ title: 'Emma' }) });
    expect(await differing({ recorded, now: careless(now) }, { edit })).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: all lanes have ended, but 2 entries of the score are left over
        the score says  bob book.read.begin  cases/books__bob.vcr:2
        left over       bob: 2
        before that     0 ann shelf.put
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('a lane that never started, because the runner opens one after another', async () => {
    const text = await differing(
      { recorded: twoReaders, now: careless(twoReaders) },
      { open: openOneAfterAnother },
    );
    expect(text).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: lane bob never started, though it is its turn
        at              step bob, lane bob, i 0 of 3, n 1 of 7
        the score says  bob shelf.put  cases/books__bob.vcr:2
        others          ann waits at book.read.begin
        before that     0 ann shelf.put
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('a lane that was not forked is laid to the lane that did something else instead', async () => {
    const forks =
      (title: string): Lanes =>
      ({ put, count }, world) => ({
        ann: async () => {
          const child = title === '' ? undefined : world.fork(async () => void (await put({ title })));
          if (child) await world.join([child]);
          else await count();
        },
      });
    expect(await differing({ recorded: forks('Emma'), now: forks('') })).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: lane ann asks for shelf.count where lane.join was recorded
        at              step ann, lane ann, i 0 of 1, n 0 of 2
        the score says  ann/0 shelf.put  cases/books__ann.0.vcr:2
        its tape says   ann lane.join  cases/books__ann.vcr:2
        the lane asks   ann shelf.count  src/effects/divergence/explain.divergence.test.ts:<line>
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('a lane that is at its place and cannot go on', async () => {
    const recorded: Lanes = ({ lock, put }) => ({ ann: () => lock(), bob: () => put({ title: 'Dune' }) });
    const now: Lanes = (library, world) => {
      const never = world.effect<void, void>({
        name: 'door.lock',
        span: 'short',
        keys: () => ({ writes: ['door'] }),
        enabled: () => false,
        perform: () => {},
      });
      return recorded({ ...library, lock: never }, world);
    };
    expect(await differing({ recorded, now: careless(now) })).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: lane ann is at its place, but cannot go on: its condition is false
        at              step ann, lane ann, i 0 of 1, n 0 of 2
        the score says  ann door.lock  cases/books__ann.vcr:2
        the lane asks   ann door.lock  src/effects/divergence/explain.divergence.test.ts:<line>
        others          bob waits at shelf.put
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('keys that somebody holds', async () => {
    const recorded: Lanes = ({ read, put }) => ({
      ann: () => read({ title: 'Emma' }),
      bob: () => put({ title: 'Dune' }),
      cid: () => read({ title: 'Emma' }),
    });
    const swap = ({ entries, witness }: Recording): Recording => {
      const order = ['ann 0', 'cid 0', 'bob 0', 'ann 1', 'cid 1'];
      const place = ({ lane, i }: RecordedEntry) => order.indexOf(`${lane} ${i}`);
      return {
        witness,
        entries: entries.toSorted((a, b) => place(a) - place(b)).map((entry, n) => ({ ...entry, n })),
      };
    };
    expect(await differing({ recorded, now: careless(recorded) }, { edit: swap })).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: lane cid is at its place, but cannot go on: the key book:Emma is held by ann
        at              step cid, lane cid, i 0 of 2, n 1 of 5
        the score says  cid book.read.begin  cases/books__cid.vcr:2
        the lane asks   cid book.read.begin  src/effects/divergence/explain.divergence.test.ts:<line>
        others          ann waits at book.read.end
                        bob waits at shelf.put
        before that     0 ann book.read.begin
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('a deadlock', async () => {
    const recorded: Lanes = ({ lock, mail }, world) => ({
      ann: async () => {
        await lock();
        const child = world.fork(() => mail.send('done'));
        await mail.receiveAll();
        await world.join([child]);
      },
    });
    const now: Lanes = ({ lock, mail }, world) => ({
      ann: async () => {
        await lock();
        const child = world.fork(async () => {
          await lock();
          await mail.send('done');
        });
        await mail.receiveAll();
        await world.join([child]);
      },
    });
    const withoutMail = ({ entries, witness }: Recording): Recording => ({
      witness,
      entries: entries.slice(0, 1),
    });
    expect(await differing({ recorded, now }, { edit: withoutMail })).toMatchInlineSnapshot(`
      "DEADLOCK: no lane can go on: ann waits at mail.receive; ann/0 waits at door.lock
        at              n 1 of 1
        the score says  nothing more
        waiting         ann waits at mail.receive: its condition is false  src/effects/divergence/explain.divergence.test.ts:<line>
                        ann/0 waits at door.lock: its condition is false  src/effects/divergence/explain.divergence.test.ts:<line>
        before that     0 ann door.lock"
    `);
  });

  it('less at the same time', async () => {
    const recorded: Lanes = ({ put, count }) => ({ ann: () => put({ title: 'Emma' }), bob: () => count() });
    const edit = ({ entries, witness }: Recording): Recording => ({
      entries,
      witness: { ...witness, mostOpen: 2 },
    });
    expect(await differing({ recorded, now: recorded }, { edit })).toBe('no complaint');
    expect(
      await differing({ recorded, now: recorded }, { edit, open: openOneAfterAnother }),
    ).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: less went on at the same time than was recorded
        steps open at once      recorded 2, now 1
        long effects at once    recorded 0, now 0
        switches between steps  recorded 1, now 1
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('a lane that asks for nothing, because it waits for one inside of it', async () => {
    const recorded: Lanes = ({ put }) => ({ ann: async () => void (await put({ title: 'Emma' })) });
    const now: Lanes = ({ put }, world) => ({
      ann: () => world.open('engine', async () => void (await put({ title: 'Emma' }))),
    });
    expect(await differing({ recorded, now })).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: lane ann/engine asks for shelf.put, but its tape has ended
        at              step ann, lane ann/engine, i 0 of 0, n 0 of 1
        the score says  ann shelf.put  cases/books__ann.vcr:2
        its tape says   nothing more
        the lane asks   ann/engine shelf.put  src/effects/divergence/explain.divergence.test.ts:<line>
        others          ann waits for inner lanes
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('the line that asks', async () => {
    const { recording } = await record(program(twoReaders));
    const now: Lanes = ({ put }) => ({ ann: () => put({ title: 'here it is' }) });
    const text = await complaint(replay(program(now), { recording, sourceRoot }));
    const [, file = '', line] = /asks .* (\S+\.ts):(\d+)$/m.exec(text) ?? [];
    const source = readFileSync(join(sourceRoot, file), 'utf8').split('\n');
    expect(source[Number(line) - 1]).toContain('here it is');
  });
});
