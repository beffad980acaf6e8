import { createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { findPortRange } from './ports.ts';

it('returns the same ports for the same key while they are free', async () => {
  const range = await findPortRange({ key: 'r1/build/0' });
  expect(range.last - range.first).toBe(9);
  expect(await findPortRange({ key: 'r1/build/0' })).toEqual(range);
});

it('skips ports that are assigned to other keys or in use', async () => {
  const range = await findPortRange({ key: 'r1/build/0', size: 4 });
  const next = await findPortRange({ key: 'r1/build/0', size: 4, taken: [range] });
  expect(next.first).toBeGreaterThan(range.last);

  const server = createServer();
  onTestFinished(() => void server.close());
  await new Promise<void>(resolve => server.listen({ port: range.last, host: '127.0.0.1' }, resolve));
  const other = await findPortRange({ key: 'r1/build/0', size: 4 });
  expect(other.first > range.last || other.last < range.first).toBe(true);
});
