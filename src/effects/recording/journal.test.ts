import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { isFlat } from '../effect.ts';
import { createLiveWorld } from '../live-world.ts';
import { createRedactor } from '../redact/redact.ts';
import { codeOf, gate, turn } from '../test-support.ts';
import type { World } from '../world.ts';
import { openJournal } from './journal.ts';
import { parseJournal, readJournal } from './journal-reader.ts';
import type { RecordedEntry } from './recording.ts';

let folder: string;
let file: string;
let notices: string[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'reprise-journal-'));
  file = join(folder, 'deep', 'run.journal');
  notices = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

const open = () => {
  const redactor = createRedactor({
    paths: [{ name: 'repo', path: '/srv/ada/project' }],
    secrets: [{ name: 'A_TOKEN', value: 'correct-horse' }],
  });
  const journal = openJournal({
    file,
    redactor,
    header: { run: 'r1', in: '/srv/ada/project' },
    onNotice: notice => notices.push(notice),
  });
  return { journal, redactor, world: createLiveWorld({ tracer: journal.tracer }) };
};

/** A short effect that ends when the test calls `answer`. */
function slow(world: World) {
  let answer: (value: unknown) => void = () => {};
  const ask = world.effect<unknown, unknown>({
    name: 'test.slow',
    span: 'short',
    keys: () => ({ reads: ['r'], writes: [] }),
    perform: () => new Promise(resolve => (answer = resolve)),
  });
  return { ask, answer: (value: unknown) => answer(value) };
}

/** Forks, a long effect that ends, one that is cancelled, one that never begins, a failure, and mail. */
async function program(world: World) {
  const { pass, begun, release } = gate(world);
  const fail = world.effect<{ at: string }, void>({
    name: 'test.fail',
    span: 'short',
    taped: { args: ({ at }) => ({ at, more: undefined }) },
    perform: () => {
      throw new TypeError('no correct-horse here');
    },
  });
  const mailbox = world.mailbox<{ from: string }>('m');
  const lane = (name: string) =>
    world.open(name, async () => {
      const works = world.fork(async () => {
        await pass(`${name}-1`);
        await mailbox.send({ from: name });
      });
      const cancelled = world.fork(async () => {
        await codeOf(pass(`${name}-2`));
        await codeOf(pass(`${name}-3`));
      });
      await codeOf(fail({ at: '/srv/ada/project/src' }));
      await mailbox.receiveAll();
      await world.cancel([cancelled]);
      release(`${name}-2`);
      await world.join([works, cancelled]);
    });
  const lanes = [lane('a'), lane('b')];
  while (begun.length < 4) await turn();
  release('a-1');
  await turn();
  release('b-1');
  await Promise.all(lanes);
}

it('hides a secret that becomes known later in the lines before it too', () => {
  const { journal, redactor } = open();
  journal.note({ said: 'hunter2hunter2' });
  journal.flush();
  expect(readFileSync(file, 'utf8')).toContain('hunter2hunter2');
  redactor.learn([{ name: 'DB_PASSWORD', value: 'hunter2hunter2' }]);
  journal.note({ said: 'again hunter2hunter2' });
  journal.close();
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  expect(lines.slice(1)).toEqual([
    '{"note":{"said":"<SECRET:DB_PASSWORD>"}}',
    '{"note":{"said":"again <SECRET:DB_PASSWORD>"}}',
  ]);
  expect(notices).toEqual([]);
});

describe('a journal', () => {
  it('consists of a header, redacted entries and notes', async () => {
    const { journal, world } = open();
    const { pass, release } = gate(world);
    journal.note({ worktree: '/srv/ada/project/x' });
    const ended = world.open('a', async () => {
      await pass('correct-horse');
      const { ask, answer } = slow(world);
      queueMicrotask(() => queueMicrotask(() => answer(undefined)));
      await ask({ in: '/srv/ada/project' });
    });
    await turn();
    release('correct-horse');
    await ended;
    journal.close();
    expect(readFileSync(file, 'utf8').split('\n')).toEqual([
      '{"format":2,"kind":"journal","run":"r1","in":"<PATH:repo>"}',
      '{"note":{"worktree":"<PATH:repo>/x"}}',
      '{"of":0,"op":"test.gate.begin"}',
      '{"n":0,"lane":"a","i":0,"of":0,"args":"<SECRET:A_TOKEN>"}',
      '{"of":1,"op":"test.gate.end"}',
      '{"n":1,"lane":"a","i":1,"of":1,"ok":"<SECRET:A_TOKEN>"}',
      '{"of":2,"op":"test.slow","keys":{"reads":["r"]}}',
      '{"n":2,"lane":"a","i":2,"of":2,"args":{"in":"<PATH:repo>"},"ok":null}',
      '',
    ]);
    expect(notices).toEqual([]);
  });

  it('contains the request of an effect in progress, and later its outcome', async () => {
    const { journal, world } = open();
    const { ask, answer } = slow(world);
    const ended = world.open('a', () => ask({ q: 1 }));
    const partial = await vi.waitUntil(async () => {
      const read = await readJournal(file);
      return read.entries.length > 0 && read;
    }, 50_000);
    expect(partial.entries).toEqual([
      { n: 0, lane: 'a', i: 0, op: 'test.slow', keys: { reads: ['r'] }, args: { q: 1 } },
    ]);
    answer(42);
    await ended;
    journal.close();
    expect((await readJournal(file)).entries).toEqual([
      { ...partial.entries[0], outcome: { kind: 'ok', value: 42 } },
    ]);
  });

  it('keeps all outcomes, in the order in which the effects were granted', async () => {
    const { journal, world } = open();
    await program(world);
    journal.close();
    const { header, entries, witness } = await readJournal(file);
    expect(header).toEqual({ format: 2, kind: 'journal', run: 'r1', in: '<PATH:repo>' });
    expect(entries.map(({ n }) => n)).toEqual(entries.map((_, at) => at));
    const own = (lane: string) => entries.filter(entry => entry.lane === lane).map(described);
    expect(own('a/1')).toEqual(['test.gate.begin', 'test.gate.end cancelled', 'test.gate.begin cancelled']);
    expect(own('a')[0]).toBe('test.fail failed');
    expect(entries.find(({ op }) => op === 'test.fail')).toMatchObject({
      args: { at: '<PATH:repo>/src' },
      outcome: {
        kind: 'failed',
        error: { code: 'STEP_FAILED', name: 'TypeError', message: 'no <SECRET:A_TOKEN> here' },
      },
    });
    expect(JSON.stringify(entries)).not.toContain('stack');
    expect(witness).toMatchObject({ mostOpen: 2, mostInFlight: 4 });
    expect(witness.switches).toBeGreaterThan(1);
  });

  it('keeps values as they were, even if they are changed later', async () => {
    const { journal, world } = open();
    const give = world.effect<{ list: number[] }, { list: number[] }>({
      name: 'test.give',
      span: 'short',
      perform: given => given,
    });
    await world.open('a', async () => {
      const { list } = await give({ list: [1] });
      list.push(2);
    });
    journal.close();
    expect((await readJournal(file)).entries).toMatchObject([
      { args: { list: [1] }, outcome: { kind: 'ok', value: { list: [1] } } },
    ]);
  });

  it('serializes lasting values later and all others at once', async () => {
    const { journal, world } = open();
    const give = world.effect<Giving, Giving>({
      name: 'test.give',
      span: 'short',
      taped: {
        args: ({ list, count }) => ({ count: count ?? list?.length }),
        lasting: { args: isFlat, result: isFlat },
      },
      perform: given => given,
    });
    await world.open('a', async () => {
      await give({ count: 1 });
      const { list } = await give({ list: [1] });
      list?.push(2);
      await give({ count: 3 });
    });
    journal.close();
    expect((await readJournal(file)).entries.map(({ args, outcome }) => [args, outcome])).toEqual([
      [{ count: 1 }, { kind: 'ok', value: { count: 1 } }],
      [{ count: 1 }, { kind: 'ok', value: { list: [1] } }],
      [{ count: 3 }, { kind: 'ok', value: { count: 3 } }],
    ]);
  });

  it('distinguishes effects of one name by their keys, for any number of keys', async () => {
    const { journal, world } = open();
    const names = Array.from({ length: 1100 }, (_, at) => `key ${at} "é"`);
    const touch = world.effect<string, void>({
      name: 'test.touch',
      span: 'short',
      keys: name => ({ writes: [name] }),
      perform: () => {},
    });
    await world.open('a', async () => {
      for (const name of [...names, ...names, 'key 0 "é"', 'key 0 "é"']) await touch(name);
    });
    journal.close();
    const { entries } = await readJournal(file);
    expect(entries.length).toBe(2202);
    expect(entries.every(({ args, keys }) => keys?.writes?.[0] === args && keys?.reads === undefined)).toBe(
      true,
    );
  });

  it('assigns outcomes to concurrent effects correctly', async () => {
    const { journal, world } = open();
    const { ask: first, answer: answerFirst } = slow(world);
    const { ask: second, answer: answerSecond } = slow(world);
    const ended = [world.open('a', () => first('1')), world.open('b', () => second('2'))];
    await turn();
    answerSecond('two');
    answerFirst('one');
    await Promise.all(ended);
    journal.close();
    expect((await readJournal(file)).entries).toMatchObject([
      { n: 0, lane: 'a', args: '1', outcome: { kind: 'ok', value: 'one' } },
      { n: 1, lane: 'b', args: '2', outcome: { kind: 'ok', value: 'two' } },
    ]);
  });

  it('is flushed even if no timer can fire', async () => {
    const { journal, world } = open();
    const say = world.effect<string, void>({ name: 'test.say', span: 'short', perform: () => {} });
    let written = 0;
    await world.open('a', async () => {
      for (let at = 0; at < 3; at++) await say('x'.repeat(1 << 20));
      written = statSync(file).size;
    });
    journal.close();
    expect(written).toBeGreaterThan(2 << 20);
  });

  describe('with flushUnlessMany', () => {
    beforeEach(() => void vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] }));
    afterEach(() => void vi.useRealTimers());
    const noted = async () => (await readJournal(file)).notes.map(({ at }) => at);
    const openLater = () => {
      const { journal } = open();
      vi.advanceTimersByTime(1000);
      return journal;
    };

    it('is flushed at once if the last call was some milliseconds ago', async () => {
      const journal = openLater();
      for (const at of [1, 2, 3]) {
        journal.note({ at });
        journal.flushUnlessMany();
        expect((await noted()).at(-1)).toBe(at);
        vi.advanceTimersByTime(6);
      }
      journal.close();
    });

    it('is flushed ten times a second during many calls, and soon after the last', async () => {
      const journal = openLater();
      const flushed = new Set<unknown>();
      for (let at = 0; at < 300; at++) {
        journal.note({ at });
        journal.flushUnlessMany();
        flushed.add((await noted()).at(-1));
        vi.advanceTimersByTime(1);
      }
      expect(flushed.size).toBe(3);
      vi.advanceTimersByTime(10);
      expect((await noted()).at(-1)).toBe(299);
      journal.close();
    });

    it('is flushed by the timer if there are no calls', async () => {
      const journal = openLater();
      journal.note({ at: 1 });
      vi.advanceTimersByTime(5);
      expect(await noted()).toEqual([1]);
      journal.note({ at: 2 });
      vi.advanceTimersByTime(5);
      expect(await noted()).toEqual([1, 2]);
      journal.close();
    });
  });

  it('can be read after truncation at any byte', async () => {
    const { journal, world } = open();
    await program(world);
    journal.close();
    const text = readFileSync(file, 'utf8');
    const whole = parseJournal({ file, text }).entries;
    const counts = new Set<number>();
    for (let end = text.indexOf('\n') + 1; end <= text.length; end++) {
      const { entries } = parseJournal({ file, text: text.slice(0, end) });
      counts.add(entries.length);
      const expected = whole.slice(0, entries.length).map((entry, at) => ({
        ...entry,
        ...(entries[at]?.outcome ? {} : { outcome: undefined }),
      }));
      expect(entries).toEqual(expected);
    }
    expect(counts.size).toBeGreaterThan(10);
  });

  it('is read in the order of its numbers, up to the first gap', () => {
    const line = (n: number, lane: string, i: number) =>
      `{"n":${n},"lane":"${lane}","i":${i},"of":0,"ok":1}\n`;
    const text = `{"format":2,"kind":"journal"}\n{"of":0,"op":"x"}\n${line(1, 'b', 0)}${line(0, 'a', 0)}${line(3, 'b', 1)}{"n":2,"la`;
    expect(parseJournal({ file, text }).entries.map(({ n, lane }) => [n, lane])).toEqual([
      [0, 'a'],
      [1, 'b'],
    ]);
  });

  it('ends with one notice at a value that cannot be written, and the run continues', async () => {
    const { journal, world } = open();
    const echo = world.effect<unknown, unknown>({
      name: 'test.echo',
      span: 'short',
      perform: value => value,
    });
    const answers = await world.open('a', async () => [await echo(1), await echo(2n), await echo(3)]);
    journal.close();
    expect(answers).toEqual([1, 2n, 3]);
    expect(notices).toHaveLength(1);
    expect(notices[0]).toContain(`cannot write the journal ${file}, so this run cannot be captured: `);
  });

  it('never writes to an existing file', async () => {
    open().journal.close();
    const { journal, world } = open();
    await world.open('a', async () => {});
    journal.note({});
    journal.flush();
    journal.close();
    expect(notices).toHaveLength(1);
    expect(notices[0]).toContain('EEXIST');
  });
});

describe('a damaged journal', () => {
  const entry = (n: number, more = '') => `{"n":${n},"lane":"a","i":${n},"of":0${more}}\n`;
  const header = '{"format":2,"kind":"journal"}\n{"of":0,"op":"x"}\n';
  it.each([
    ['not JSON', `${header}{"n":\n`, 'TAPE_INVALID: j:3: not JSON'],
    ['unknown field', `${header}${entry(0, ',"time":1')}`, 'TAPE_INVALID: j:3: time: unknown field'],
    [
      'two outcomes',
      `${header}${entry(0, ',"ok":1,"cancelled":true')}`,
      'TAPE_INVALID: j:3: ok and cancelled: only one',
    ],
    ['a repeated number', `${header}${entry(0)}${entry(0)}`, 'TAPE_INVALID: j:4: entry 0 occurs twice'],
    [
      'an outcome without an entry',
      `${header}{"n":3,"ok":1}\n`,
      'TAPE_INVALID: j:3: entry 3 is not in progress',
    ],
    [
      'an unknown kind of entry',
      `${header}{"n":0,"lane":"a","i":0,"of":7}\n`,
      'TAPE_INVALID: j:3: kind 7 is not defined',
    ],
    ['a repeated kind', `${header}{"of":0,"op":"y"}\n`, 'TAPE_INVALID: j:3: kind 0 is defined twice'],
    ['another kind of file', '{"format":1,"kind":"tape"}\n', 'TAPE_INVALID: j:1: kind: expected "journal"'],
    [
      'another format',
      '{"format":9,"kind":"journal"}\n',
      'REPLAY_DIVERGED: format version: j:1 is a journal with format 9',
    ],
    ['an empty file', '', 'TAPE_INVALID: j:1: the file is empty'],
  ])('is refused with the line: %s', async (_, text, expected) => {
    const path = join(folder, 'j');
    writeFileSync(path, text);
    const message = await codeOf(readJournal(path));
    expect(message.replace(path, 'j')).toContain(expected);
  });
});

interface Giving {
  readonly list?: number[];
  readonly count?: number;
}

const described = ({ op, outcome }: RecordedEntry): string =>
  !outcome || outcome.kind === 'ok' ? op : `${op} ${outcome.kind}`;
