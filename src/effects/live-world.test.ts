import { describe, expect, it } from 'vitest';
import { RepriseError } from '../core/errors.ts';
import { createLiveWorld } from './live-world.ts';
import { codeOf, gate, note, turn } from './test-support.ts';

describe('a lane', () => {
  it('is named after its parent and the number of the fork, regardless of when it runs', async () => {
    const world = createLiveWorld();
    const names = await world.open('run', async () => {
      const first = world.fork(async () => {
        const inner = world.fork(async () => {});
        await world.join([inner]);
      });
      const second = world.fork(async () => {});
      await world.join([first, second]);
      const third = world.fork(async () => {});
      await world.join([third]);
      return [first.name, second.name, third.name];
    });
    expect(names).toEqual(['run/0', 'run/1', 'run/2']);
  });

  it('returns the result of its body', async () => {
    await expect(createLiveWorld().open('run', async () => 42)).resolves.toBe(42);
  });

  it('keeps its name until it ends', async () => {
    const world = createLiveWorld();
    const { pass, release } = gate(world);
    const first = world.open('run', () => pass('a'));
    expect(await codeOf(world.open('run', async () => {}))).toBe(
      'LANE_MISUSE: a lane named run is already open',
    );
    release('a');
    await first;
    await expect(world.open('run', async () => 'again')).resolves.toBe('again');
  });

  it('can be opened again in a world whose lanes have all ended', async () => {
    const world = createLiveWorld();
    const heard: string[] = [];
    const say = note(world, heard);
    await world.open('run', () => say('first'));
    expect(await codeOf(say('outside'))).toContain('LANE_MISUSE');
    await Promise.all([world.open('a', () => say('second')), world.open('b', () => say('third'))]);
    expect(heard).toEqual(['first', 'second', 'third']);
  });

  it('fails if it ends before a lane that it forked', async () => {
    const world = createLiveWorld();
    const { pass, release } = gate(world);
    const opened = world.open('run', async () => {
      world.fork(async () => {
        await pass('child');
      });
    });
    expect(await codeOf(opened)).toBe(
      'LANE_MISUSE: lane run ended before run/0, which it forked; join it first',
    );
    release('child');
  });

  it('fails if it ends with an effect in progress', async () => {
    const world = createLiveWorld();
    const { pass, release } = gate(world);
    const opened = world.open('run', async () => {
      void pass('not awaited');
    });
    expect(await codeOf(opened)).toBe('LANE_MISUSE: lane run ended without awaiting test.gate');
    release('not awaited');
  });

  it('is joined only after it has ended', async () => {
    const world = createLiveWorld();
    const { pass, release } = gate(world);
    const order: string[] = [];
    const opened = world.open('run', async () => {
      const child = world.fork(async () => {
        await pass('child');
        order.push('child');
      });
      await world.join([child]);
      order.push('parent');
    });
    await turn();
    release('child');
    await opened;
    expect(order).toEqual(['child', 'parent']);
  });

  it('makes its join throw a rebuilt copy of the error that its body threw', async () => {
    const world = createLiveWorld();
    const thrown = new RepriseError('STORE_FAILED', 'disk is full', { hint: 'make room' });
    const caught = await world.open('run', async () => {
      const child = world.fork(async () => {
        throw thrown;
      });
      return world.join([child]).catch((error: unknown) => error);
    });
    expect(caught).toMatchObject({ code: 'STORE_FAILED', message: 'disk is full', hint: 'make room' });
    expect(caught).not.toBe(thrown);
  });

  it.each([undefined, null, 'text', 0])('makes its join throw even if its body threw %s', async thrown => {
    const world = createLiveWorld();
    const opened = world.open('run', async () => {
      const child = world.fork(async () => {
        throw thrown;
      });
      await world.join([child]);
    });
    await expect(opened).rejects.toThrow(RepriseError);
  });
});

describe('a live world', () => {
  it('refuses a Promise.all over effects of one lane and suggests fork()', async () => {
    const world = createLiveWorld();
    const say = note(world, []);
    const opened = world.open('run', () => Promise.all([say('a'), say('b')]));
    expect(await codeOf(opened)).toBe(
      'LANE_MISUSE: lane run called test.note while test.note is still running; await it first, or use fork() instead of Promise.all',
    );
  });

  it('refuses a second effect while a long one is in progress', async () => {
    const world = createLiveWorld();
    const { pass, release } = gate(world);
    const say = note(world, []);
    const opened = world.open('run', async () => {
      const long = pass('a');
      for (let turns = 0; turns < 3; turns++) await Promise.resolve();
      const second = codeOf(say('b'));
      release('a');
      await long;
      return second;
    });
    expect(await opened).toContain('called test.note while test.gate is still running');
  });

  it('refuses effects inside effects', async () => {
    const world = createLiveWorld();
    const say = note(world, []);
    const nesting = world.effect<void, void>({
      name: 'test.nesting',
      span: 'short',
      perform: () => say('inside'),
    });
    expect(await codeOf(world.open('run', () => nesting()))).toBe(
      'LANE_MISUSE: lane run called test.note inside the effect test.nesting; effects do not nest',
    );
  });

  it('refuses forks inside effects, and effects and forks outside any lane', async () => {
    const world = createLiveWorld();
    const say = note(world, []);
    const forking = world.effect<void, void>({
      name: 'test.forking',
      span: 'short',
      perform: () => {
        world.fork(async () => {});
      },
    });
    expect(await codeOf(world.open('run', () => forking()))).toContain(
      'called fork inside the effect test.forking',
    );
    expect(await codeOf(say('nowhere'))).toBe('LANE_MISUSE: test.note was called outside any lane');
    expect(() => world.fork(async () => {})).toThrow('fork was called outside any lane');
  });

  it('rebuilds errors: the class is lost, the code and the message are kept', async () => {
    class OwnError extends Error {
      override name = 'OwnError';
      code = 'ENOENT';
    }
    const world = createLiveWorld();
    const failing = world.effect<unknown, void>({
      name: 'test.failing',
      span: 'short',
      perform: thrown => {
        throw thrown;
      },
    });
    const caught = (thrown: unknown) =>
      world.open('run', () => failing(thrown).catch((error: unknown) => error));
    const own = await caught(new OwnError('no such file'));
    expect(own).not.toBeInstanceOf(OwnError);
    expect(own).toMatchObject({ code: 'INTERNAL', message: 'test.failing: no such file (ENOENT)' });
    expect(await caught(new RepriseError('FENCED', 'gone'))).toMatchObject({
      code: 'FENCED',
      message: 'gone',
    });
    expect(await caught('just a text')).toMatchObject({
      code: 'INTERNAL',
      message: 'test.failing: just a text',
    });
    expect(await caught(undefined)).toBeInstanceOf(RepriseError);
  });
});

describe('a mailbox', () => {
  it('delivers in one batch all messages sent in one turn', async () => {
    const world = createLiveWorld();
    const box = world.mailbox<number>('box');
    const batches = await world.open('run', async () => {
      const senders = [1, 2, 3].map(value => world.fork(() => box.send(value)));
      const first = await box.receiveAll();
      await world.join(senders);
      await box.send(4);
      return [first, await box.receiveAll()];
    });
    expect(batches).toEqual([[1, 2, 3], [4]]);
  });

  it('makes the receiver wait for the first message', async () => {
    const world = createLiveWorld();
    const box = world.mailbox<string>('box');
    const { pass, release } = gate(world);
    const opened = world.open('run', async () => {
      const sender = world.fork(async () => box.send(await pass('work')));
      const batch = await box.receiveAll();
      await world.join([sender]);
      return batch;
    });
    await turn();
    release('work', 'late');
    expect(await opened).toEqual(['late']);
  });
});

describe('deadlock and stray detection', () => {
  it('reports a deadlock with the effect that each lane waits for', async () => {
    const world = createLiveWorld();
    const box = world.mailbox<string>('box');
    const opened = world.open('run', async () => {
      const child = world.fork(async () => {
        await box.receiveAll();
      });
      await world.join([child]);
    });
    expect(await codeOf(opened)).toBe(
      'DEADLOCK: no lane can continue: run/0 waits at mail.receive; run waits at lane.join',
    );
  });

  it('reports no deadlock while a long effect is in progress', async () => {
    const world = createLiveWorld();
    const { pass, release } = gate(world);
    const opened = world.open('run', async () => {
      const child = world.fork(async () => {
        await pass('work');
      });
      await world.join([child]);
      return 'joined';
    });
    for (let turns = 0; turns < 5; turns++) await turn();
    release('work');
    expect(await opened).toBe('joined');
  });

  it('fails a lane that awaits something other than an effect, with refuseStrays', async () => {
    const strict = createLiveWorld({ refuseStrays: true });
    const say = note(strict, []);
    const opened = strict.open('run', async () => {
      await say('begun');
      await turn().then(turn);
    });
    expect(await codeOf(opened)).toBe(
      "LANE_MISUSE: lane run awaits a promise that is not an effect (a timer, I/O, another lane's promise) after test.note",
    );
  });

  it('accepts a lane that awaits something other than an effect, without refuseStrays', async () => {
    const world = createLiveWorld();
    const say = note(world, []);
    await expect(
      world.open('run', async () => {
        await say('begun');
        await turn().then(turn);
        return 'fine';
      }),
    ).resolves.toBe('fine');
  });
});

describe('waiting entries', () => {
  it('are asked about their condition only when one of their keys changes', async () => {
    const world = createLiveWorld();
    let questions = 0;
    const lanes = 200;
    const waitFor = (open: ReadonlySet<string>) =>
      world.effect<string, void>({
        name: 'test.wait',
        span: 'short',
        keys: name => ({ writes: [`gate:${name}`] }),
        enabled: name => {
          questions++;
          return open.has(name);
        },
        perform: () => {},
      });
    await world.open('run', async () => {
      const open = new Set<string>();
      const pass = waitFor(open);
      const release = world.effect<string, void>({
        name: 'test.release',
        span: 'short',
        keys: name => ({ writes: [`gate:${name}`] }),
        perform: name => void open.add(name),
      });
      const forked = Array.from({ length: lanes }, (_, index) => world.fork(() => pass(`lane ${index}`)));
      for (let index = 0; index < lanes; index++) await release(`lane ${index}`);
      await world.join(forked);
    });
    // Once on arrival, once after the release, and a few times for entries of the same key that queue behind it.
    expect(questions).toBeLessThan(lanes * 6);
  });

  it('do not queue behind an entry that waits for a long effect at another key', async () => {
    const world = createLiveWorld();
    const heard: string[] = [];
    const use = world.effect<{ readonly name: string; readonly writes: readonly string[] }, void>({
      name: 'test.use',
      span: 'short',
      keys: ({ writes }) => ({ writes }),
      perform: ({ name }) => void heard.push(name),
    });
    const occupy = world.effect<void, void>({
      name: 'test.occupy',
      span: 'long',
      keys: () => ({ writes: ['b'] }),
      perform: () => new Promise<void>(resolve => setImmediate(resolve)),
    });
    await world.open('run', async () => {
      const holder = world.fork(() => occupy());
      const blocked = world.fork(() => use({ name: 'blocked by b', writes: ['a', 'b'] }));
      const free = world.fork(() => use({ name: 'needs only a', writes: ['a'] }));
      await world.join([holder, blocked, free]);
    });
    expect(heard).toEqual(['needs only a', 'blocked by b']);
  });
});
