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

/** A bookshelf behind a key, a long effect that reads a book, and a lock. */
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
      perform: async ({ title }) => `text of ${title}`,
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

/** Returns the error of replaying the recorded program as the program `now`, without line numbers of this file. */
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

/** Makes lanes ignore all errors: a divergence must not be catchable by a lane. */
const careless = (lanes: Lanes): Lanes => {
  const ignoringErrors =
    <Args, Result>(effect: (args: Args) => Promise<Result>) =>
    async (args: Args) => {
      try {
        return await effect(args);
      } catch {
        return undefined as Result;
      }
    };
  return ({ put, read, count, lock, mail }, world) =>
    lanes(
      {
        put: ignoringErrors(put),
        read: ignoringErrors(read),
        count: ignoringErrors(count),
        lock: ignoringErrors(lock),
        mail,
      },
      world,
    );
};

describe('the error of a diverged replay', () => {
  it('reports a lane that ends before its tape', async () => {
    const now: Lanes = library => ({
      ...twoReaders(library, {} as World),
      ann: () => library.put({ title: 'Emma' }),
    });
    expect(await differing({ recorded: twoReaders, now: careless(now) })).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: lane ann ended, but its tape has 3 more entries
        at           step ann, lane ann, i 1 of 4, n 1 of 7
        expected     bob shelf.put  cases/books__bob.vcr:2
        on its tape  ann book.read.begin  cases/books__ann.vcr:3
        other lanes  bob waits at shelf.put
        before that  0 ann shelf.put
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('reports a call after the end of the tape', async () => {
    const now: Lanes = (library, world) => ({
      ...twoReaders(library, world),
      bob: async () => {
        await library.put({ title: 'Dune' });
        await library.read({ title: 'Dune' });
        await library.put({ title: 'Ulysses' });
      },
    });
    expect(await differing({ recorded: twoReaders, now: careless(now) })).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: lane bob calls shelf.put, but its tape has ended
        at             step bob, lane bob, i 3 of 3, n 7 of 7
        expected       the end of the score
        called         bob shelf.put  src/effects/divergence/explain.divergence.test.ts:<line>
        before that    0 ann shelf.put
                       1 bob shelf.put
                       2 ann book.read.begin
                       3 bob book.read.begin
                       4 ann book.read.end
                       5 bob book.read.end
                       6 ann shelf.count
        nearest match  bob shelf.put  cases/books__bob.vcr:2, i 0, 3 earlier
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('reports different arguments', async () => {
    const long = 'x'.repeat(200);
    const recorded: Lanes = ({ put }) => ({
      ann: () => put({ title: 'Emma', pages: 400, note: `${long}a` }),
    });
    const now: Lanes = ({ put }) => ({ ann: () => put({ title: 'Dune', note: `${long}b` }) });
    expect(await differing({ recorded, now: careless(now) })).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: lane ann calls shelf.put with different arguments than recorded
        at          step ann, lane ann, i 0 of 1, n 0 of 1
        expected    ann shelf.put  cases/books__ann.vcr:2
        called      ann shelf.put  src/effects/divergence/explain.divergence.test.ts:<line>
        difference  args.title: recorded "Emma", now "Dune"
                    args.pages: recorded 400, now nothing
                    args.note: recorded "…xxxxxxxxxxxxxxxxxxxxa", now "…xxxxxxxxxxxxxxxxxxxxb"
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('reports different keys', async () => {
    const recorded: Lanes = ({ read }) => ({ ann: () => read({ title: 'Emma' }) });
    const edit = ({ entries, witness }: Recording): Recording => ({
      witness,
      entries: entries.map(entry => (entry.keys ? { ...entry, keys: { reads: ['library'] } } : entry)),
    });
    expect(await differing({ recorded, now: careless(recorded) }, { edit })).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: lane ann calls book.read.begin with different keys than recorded
        at          step ann, lane ann, i 0 of 2, n 0 of 2
        expected    ann book.read.begin  cases/books__ann.vcr:2
        called      ann book.read.begin  src/effects/divergence/explain.divergence.test.ts:<line>
        difference  keys.reads[0]: recorded "library", now nothing
                    keys.writes[0]: recorded nothing, now "book:Emma"
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('reports a different result', async () => {
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
      "REPLAY_DIVERGED: replay diverged: shelf.count of lane ann ended differently than recorded
        at           step ann, lane ann, i 1 of 2, n 1 of 2
        expected     ann shelf.count  cases/books__ann.vcr:3
        called from  src/effects/divergence/explain.divergence.test.ts:<line>
        difference   result.books: recorded 7, now 1
        before that  0 ann shelf.put
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('reports a result in place of a recorded failure', async () => {
    const recorded: Lanes = ({ count }) => ({ ann: () => count() });
    const edit = ({ entries, witness }: Recording): Recording => ({
      witness,
      entries: entries.map(entry => ({
        ...entry,
        outcome: { kind: 'failed', error: { code: 'GIT_FAILED', message: 'no such branch' } },
      })),
    });
    expect(await differing({ recorded, now: careless(recorded) }, { edit })).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: shelf.count of lane ann ended differently than recorded
        at           step ann, lane ann, i 0 of 1, n 0 of 1
        expected     ann shelf.count  cases/books__ann.vcr:2
        called from  src/effects/divergence/explain.divergence.test.ts:<line>
        difference   end: recorded failed with GIT_FAILED: no such branch, now ok
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('reports a different order of calls', async () => {
    const now: Lanes = (library, world) => ({
      ...twoReaders(library, world),
      ann: async () => {
        await library.put({ title: 'Emma' });
        await library.count();
        await library.read({ title: 'Emma' });
      },
    });
    expect(await differing({ recorded: twoReaders, now: careless(now) })).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: lane ann calls shelf.count where book.read.begin was recorded
        at             step ann, lane ann, i 1 of 4, n 2 of 7
        expected       ann book.read.begin  cases/books__ann.vcr:3
        called         ann shelf.count  src/effects/divergence/explain.divergence.test.ts:<line>
        other lanes    bob waits at book.read.begin
        before that    0 ann shelf.put
                       1 bob shelf.put
        nearest match  ann shelf.count  cases/books__ann.vcr:5, i 3, 2 later
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('reports recorded entries that were not replayed', async () => {
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
      "REPLAY_DIVERGED: replay diverged: all lanes have ended, but the score has 2 more entries
        expected      bob book.read.begin  cases/books__bob.vcr:2
        not replayed  bob: 2
        before that   0 ann shelf.put
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('reports a lane that has not started because the runner opens lanes one after another', async () => {
    const text = await differing(
      { recorded: twoReaders, now: careless(twoReaders) },
      { open: openOneAfterAnother },
    );
    expect(text).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: lane bob has not started, but it is its turn
        at           step bob, lane bob, i 0 of 3, n 1 of 7
        expected     bob shelf.put  cases/books__bob.vcr:2
        other lanes  ann waits at book.read.begin
        before that  0 ann shelf.put
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('blames a missing fork on the lane that made another call instead', async () => {
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
      "REPLAY_DIVERGED: replay diverged: lane ann calls shelf.count where lane.join was recorded
        at           step ann, lane ann, i 0 of 1, n 0 of 2
        expected     ann/0 shelf.put  cases/books__ann.0.vcr:2
        on its tape  ann lane.join  cases/books__ann.vcr:2
        called       ann shelf.count  src/effects/divergence/explain.divergence.test.ts:<line>
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('reports a lane whose turn it is but whose condition is false', async () => {
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
      "REPLAY_DIVERGED: replay diverged: it is the turn of lane ann, but it cannot continue: its condition is false
        at           step ann, lane ann, i 0 of 1, n 0 of 2
        expected     ann door.lock  cases/books__ann.vcr:2
        called       ann door.lock  src/effects/divergence/explain.divergence.test.ts:<line>
        other lanes  bob waits at shelf.put
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('reports a lane whose turn it is but whose keys are held', async () => {
    const recorded: Lanes = ({ read, put }) => ({
      ann: () => read({ title: 'Emma' }),
      bob: () => put({ title: 'Dune' }),
      cid: () => read({ title: 'Emma' }),
    });
    const swap = ({ entries, witness }: Recording): Recording => {
      const order = ['ann 0', 'cid 0', 'bob 0', 'ann 1', 'cid 1'];
      const position = ({ lane, i }: RecordedEntry) => order.indexOf(`${lane} ${i}`);
      return {
        witness,
        entries: entries.toSorted((a, b) => position(a) - position(b)).map((entry, n) => ({ ...entry, n })),
      };
    };
    expect(await differing({ recorded, now: careless(recorded) }, { edit: swap })).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: it is the turn of lane cid, but it cannot continue: the key book:Emma is held by ann
        at           step cid, lane cid, i 0 of 2, n 1 of 5
        expected     cid book.read.begin  cases/books__cid.vcr:2
        called       cid book.read.begin  src/effects/divergence/explain.divergence.test.ts:<line>
        other lanes  ann waits at book.read.end
                     bob waits at shelf.put
        before that  0 ann book.read.begin
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('reports a deadlock', async () => {
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
      "DEADLOCK: no lane can continue: ann waits at mail.receive; ann/0 waits at door.lock
        at           n 1 of 1
        expected     the end of the score
        waiting      ann waits at mail.receive: its condition is false  src/effects/divergence/explain.divergence.test.ts:<line>
                     ann/0 waits at door.lock: its condition is false  src/effects/divergence/explain.divergence.test.ts:<line>
        before that  0 ann door.lock"
    `);
  });

  it('reports that less ran in parallel', async () => {
    const recorded: Lanes = ({ put, count }) => ({ ann: () => put({ title: 'Emma' }), bob: () => count() });
    const edit = ({ entries, witness }: Recording): Recording => ({
      entries,
      witness: { ...witness, mostOpen: 2 },
    });
    expect(await differing({ recorded, now: recorded }, { edit })).toBe('no complaint');
    expect(
      await differing({ recorded, now: recorded }, { edit, open: openOneAfterAnother }),
    ).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: less ran in parallel than was recorded
        steps in parallel         recorded 2, now 1
        long effects in parallel  recorded 0, now 0
        switches between steps    recorded 1, now 1
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('reports a lane that makes no call because it waits for an inner lane', async () => {
    const recorded: Lanes = ({ put }) => ({ ann: async () => void (await put({ title: 'Emma' })) });
    const now: Lanes = ({ put }, world) => ({
      ann: () => world.open('engine', async () => void (await put({ title: 'Emma' }))),
    });
    expect(await differing({ recorded, now })).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: replay diverged: lane ann/engine calls shelf.put, but its tape has ended
        at           step ann, lane ann/engine, i 0 of 0, n 0 of 1
        expected     ann shelf.put  cases/books__ann.vcr:2
        on its tape  the end of the tape
        called       ann/engine shelf.put  src/effects/divergence/explain.divergence.test.ts:<line>
        other lanes  ann waits for inner lanes
      if this is intended, record it again: reprise test books --record"
    `);
  });

  it('names the source line of the call', async () => {
    const { recording } = await record(program(twoReaders));
    const now: Lanes = ({ put }) => ({ ann: () => put({ title: 'here it is' }) });
    const text = await complaint(replay(program(now), { recording, sourceRoot }));
    const [, file = '', line] = /called .* (\S+\.ts):(\d+)$/m.exec(text) ?? [];
    const source = readFileSync(join(sourceRoot, file), 'utf8').split('\n');
    expect(source[Number(line) - 1]).toContain('here it is');
  });
});
