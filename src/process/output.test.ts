import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { OutputCollector } from './output.ts';
import { labPerTest } from './test-support.ts';

const lab = labPerTest();
const chunk = Buffer.alloc(64 * 1024, 'x');

async function collect(logFile?: string) {
  const collector = new OutputCollector({ logFile });
  const [out, err] = [new PassThrough(), new PassThrough()];
  collector.read('stdout', out);
  collector.read('stderr', err);
  // A stream that is listened to begins to flow in the next turn.
  await new Promise(setImmediate);
  return { collector, out, err };
}

test('both streams are held back while the log file is behind, and go on when it has caught up', async () => {
  const log = join(lab().folder, 'log');
  const { collector, out, err } = await collect(log);
  let taken = 0;
  for (; !out.isPaused() && taken < 100; taken++) out.emit('data', chunk);
  expect(taken).toBe(16);
  expect(err.isPaused()).toBe(true);
  await once(err, 'resume');
  expect(out.isPaused()).toBe(false);
  await collector.end();
  expect(statSync(log).size).toBe(taken * chunk.length);
});

test('letting go still takes what waits in the pipe', async () => {
  const log = join(lab().folder, 'log');
  const collector = new OutputCollector({ logFile: log });
  const script = 'head -c 150000 /dev/zero; printf end';
  const child = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'] });
  // Nobody reads before the exit, so that there is much to be read after it.
  child.once('exit', () => collector.read('stdout', child.stdout));
  await once(child, 'exit');
  await collector.detach();
  expect(child.stdout.destroyed).toBe(true);
  expect(await collector.end()).toMatch(/\0end$/);
  expect(statSync(log).size).toBe(150_003);
});

test('letting go waits until the log file has caught up', async () => {
  const log = join(lab().folder, 'log');
  const { collector, out } = await collect(log);
  while (!out.isPaused()) out.emit('data', chunk);
  out.write('last words');
  await collector.detach();
  expect(out.destroyed).toBe(true);
  expect(await collector.end()).toMatch(/xlast words$/);
});

test('without a log file nothing is held back', async () => {
  const { collector, out } = await collect();
  for (let taken = 0; taken < 100; taken++) out.emit('data', chunk);
  expect(out.isPaused()).toBe(false);
  expect(await collector.end()).toHaveLength(16 * 1024);
});
