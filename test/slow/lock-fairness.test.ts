import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runTogether, Worker } from '../../src/git/processes.conformance.ts';
import { Lab } from '../../src/git/test-support.ts';

it('starves none of 20 waiting processes, although another takes the lock again and again', async () => {
  const lab = new Lab();
  const greedy = new Worker({ task: 'count', root: lab.root, name: 'greedy', rounds: 400 });
  const names = Array.from({ length: 20 }, (_, index) => `waiter-${index}`);
  const waiters = names.map(name => new Worker({ task: 'count', root: lab.root, name, rounds: 1 }));
  await runTogether([greedy, ...waiters]);
  const order = readFileSync(join(lab.folder, 'who'), 'utf8').trimEnd().split('\n');
  expect(order.filter(name => name !== 'greedy').sort()).toEqual([...names].sort());
  expect(order.at(-1)).toBe('greedy');
});
