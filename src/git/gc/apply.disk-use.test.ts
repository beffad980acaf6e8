import { linkSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../test-support.ts';
import { diskUse } from './apply.ts';

it('counts every file once, and follows no symbolic links', async () => {
  const folder = temporaryFolder();
  const empty = await diskUse(folder);
  writeFileSync(join(folder, 'big'), Buffer.alloc(1024 * 1024, 1));
  const one = await diskUse(folder);
  expect(one - empty).toBeGreaterThanOrEqual(1024 * 1024);
  linkSync(join(folder, 'big'), join(folder, 'same'));
  symlinkSync('/', join(folder, 'everything'));
  expect((await diskUse(folder)) - one).toBeLessThan(64 * 1024);
  expect(await diskUse(join(folder, 'nothing'))).toBe(0);
});
