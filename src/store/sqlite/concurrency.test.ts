import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { HistoryEvent } from '../../core/event.ts';
import { newRun, owner, started, time } from '../samples.conformance.ts';
import { openSqliteStore } from './open.ts';
import { temporaryFile, temporaryStore } from './temporary.conformance.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const writer = fileURLToPath(new URL('./fixtures/writer.mjs', import.meta.url));
let compiled: string;

type Line = Readonly<Record<string, unknown>>;

/** Children cannot run TypeScript, so that they get the store as JavaScript, without a check of its types. */
async function compileStore(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'reprise-compiled-'));
  const config = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: {
      noEmit: false,
      noCheck: true,
      declaration: false,
      types: [],
      rootDir: join(root, 'src'),
      outDir: folder,
    },
    include: [],
    files: [join(root, 'src/store/sqlite/open.ts')],
  };
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config));
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'), 'dir');
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  await promisify(execFile)(process.execPath, [tsc, '-p', folder]);
  return folder;
}

class Writer {
  readonly lines: Line[] = [];
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown[]>;
  readonly #waiting = new Set<() => void>();
  #errors = '';

  constructor(task: string, file: string, name: string) {
    const child = spawn(process.execPath, [writer, compiled, task, file, name], { stdio: 'pipe' });
    this.#child = child;
    this.#ended = once(child, 'close');
    child.stderr.setEncoding('utf8').on('data', text => {
      this.#errors += text;
    });
    createInterface({ input: child.stdout }).on('line', line => {
      this.lines.push(JSON.parse(line));
      for (const wake of this.#waiting) wake();
    });
  }

  /** Resolves when it has printed that many lines; rejects if it ends before. */
  async printed(count: number): Promise<void> {
    while (this.lines.length < count) {
      const line = new Promise<'line'>(resolve => {
        const wake = () => {
          this.#waiting.delete(wake);
          resolve('line');
        };
        this.#waiting.add(wake);
      });
      const first = await Promise.race([line, this.#ended]);
      if (first !== 'line' && this.lines.length < count) throw new Error(`ended early: ${this.#errors}`);
    }
  }

  start(): void {
    this.#child.stdin?.write('go\n');
  }

  /** Resolves when it has ended by itself, without an error. */
  async done(): Promise<void> {
    const [code] = await this.#ended;
    expect(this.#errors).toBe('');
    expect(code).toBe(0);
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  /** The values of one kind of line. */
  said(key: string): unknown[] {
    return this.lines.filter(line => key in line).map(line => line[key]);
  }
}

interface Output {
  readonly tag: string;
  readonly epoch?: number;
}

const outputsOf = (history: readonly HistoryEvent[]): Output[] =>
  history.map(({ data }) => ('output' in data ? (data.output as unknown as Output) : { tag: 'none' }));

/** Starts all of them at the same moment. */
async function startTogether(writers: readonly Writer[]): Promise<void> {
  for (const each of writers) onTestFinished(() => each.kill());
  await Promise.all(writers.map(each => each.printed(1)));
  for (const each of writers) each.start();
}

async function runTogether(writers: readonly Writer[]): Promise<void> {
  await startTogether(writers);
  await Promise.all(writers.map(each => each.done()));
}

describe('several processes on one SQLite store', () => {
  beforeAll(async () => {
    compiled = await compileStore();
  });
  afterAll(() => rm(compiled, { recursive: true, force: true }));

  it('may all create and migrate it at once', async () => {
    for (let round = 0; round < 3; round++) {
      const file = await temporaryFile();
      const names = Array.from({ length: 6 }, (_, index) => `run-${index}`);
      await runTogether(names.map(name => new Writer('open', file, name)));
      const store = await openSqliteStore({ file });
      onTestFinished(() => store.close());
      expect((await store.list()).map(summary => summary.runId).toSorted()).toEqual(names);
    }
  });

  it('lose no event, double none, and have one owner per epoch', async () => {
    const { file, store } = await temporaryStore();
    await store.createRun(newRun('r1', { expiresAt: time(0) }));
    const writers = ['ann', 'bob', 'carl'].map(name => new Writer('own', file, name));
    await runTogether(writers);

    const epochs = writers.flatMap(each => each.said('acquired')) as number[];
    expect(epochs.toSorted((a, b) => a - b)).toEqual(epochs.map((_, index) => index + 2));
    expect(writers.flatMap(each => each.said('refused')).filter(code => code !== 'FENCED')).toEqual([]);

    const outputs = outputsOf(await store.read('r1', 1));
    const tags = outputs.filter((_, index) => index % 2 === 0).map(output => output.tag);
    expect(outputs.map(output => output.tag)).toEqual(tags.flatMap(tag => [tag, tag]));
    expect(tags.toSorted()).toEqual(writers.flatMap(each => each.said('appended')).toSorted());
    const written = outputs.map(output => output.epoch ?? 0);
    expect(written).toEqual(written.toSorted((a, b) => a - b));
  });

  it('post to the inbox without ever fencing out the owner', async () => {
    const { file, store } = await temporaryStore();
    const lease = await store.createRun(newRun('r1', { events: [started] }));
    const writers = ['ann', 'bob'].map(name => new Writer('post', file, name));
    await startTogether(writers);

    const received: string[] = [];
    let seq = 1;
    while (received.length < 200) {
      const entries = await store.inbox('r1');
      const payloads = entries.map(({ message }) =>
        message.kind === 'signal' ? message.payload : null,
      ) as string[];
      const events = payloads.map(
        payload => ({ type: 'signal.received', data: { name: 'go', payload } }) as const,
      );
      const consumed = entries.map(entry => entry.id);
      await store.append({ runId: 'r1', lease, expectedSeq: seq, at: time(1), events, consumed });
      seq += events.length;
      received.push(...payloads);
      await new Promise(setImmediate);
    }
    await Promise.all(writers.map(each => each.done()));
    expect(await store.inbox('r1')).toEqual([]);
    for (const name of ['ann', 'bob']) {
      const own = received.filter(payload => payload.startsWith(name));
      expect(own).toEqual(Array.from({ length: 100 }, (_, index) => `${name}.${index}`));
    }
    expect(await store.read('r1')).toHaveLength(201);
  });

  it('find every committed batch whole after one of them was killed in the middle', async () => {
    // No connection outlives a victim, so that the next one has to recover what it left behind.
    const file = await temporaryFile();
    await runTogether([new Writer('open', file, 'r1')]);
    const acknowledged: unknown[] = [];
    for (const [round, lines] of [2, 20, 75, 150].entries()) {
      const victim = new Writer('endless', file, `victim-${round}`);
      await startTogether([victim]);
      await victim.printed(lines);
      await victim.kill();
      acknowledged.push(...victim.said('appended'));
    }

    const later = await openSqliteStore({ file });
    onTestFinished(() => later.close());
    const history = await later.read('r1', 1);
    expect(history.map(event => event.step)).toEqual(history.map((_, index) => 'abc'[index % 3]));
    const all = outputsOf(history).map(output => output.tag);
    const tags = all.filter((_, index) => index % 3 === 0);
    expect(all).toEqual(tags.flatMap(tag => [tag, tag, tag]));
    expect(tags).toEqual(expect.arrayContaining(acknowledged));
    const next = await later.acquire({
      runId: 'r1',
      owner: owner('next'),
      now: time(99_999),
      expiresAt: time(99_999),
    });
    expect(next).toMatchObject({ kind: 'acquired', lease: { epoch: 6 } });
  });
});
