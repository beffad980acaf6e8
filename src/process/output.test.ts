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
  // A stream starts to flow in the turn after a listener was added.
  await new Promise(setImmediate);
  return { collector, out, err };
}

test('both streams are paused while the log file is behind, and resumed when it has caught up', async () => {
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

test('detaching still reads the output that is in the pipe', async () => {
  const log = join(lab().folder, 'log');
  const collector = new OutputCollector({ logFile: log });
  const script = 'head -c 150000 /dev/zero; printf end';
  const child = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'] });
  // Reading starts only after the exit, so much output is still in the pipe.
  child.once('exit', () => collector.read('stdout', child.stdout));
  await once(child, 'exit');
  await collector.detach();
  expect(child.stdout.destroyed).toBe(true);
  expect(await collector.end()).toMatch(/\0end$/);
  expect(statSync(log).size).toBe(150_003);
});

test('detaching waits until the log file has caught up', async () => {
  const log = join(lab().folder, 'log');
  const { collector, out } = await collect(log);
  while (!out.isPaused()) out.emit('data', chunk);
  out.write('last words');
  await collector.detach();
  expect(out.destroyed).toBe(true);
  expect(await collector.end()).toMatch(/xlast words$/);
});

test('without a log file no stream is paused', async () => {
  const { collector, out } = await collect();
  for (let taken = 0; taken < 100; taken++) out.emit('data', chunk);
  expect(out.isPaused()).toBe(false);
  expect(await collector.end()).toHaveLength(16 * 1024);
});
