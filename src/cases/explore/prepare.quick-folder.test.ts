import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { thisProcess } from '../../process/table.ts';
import { ownerFile } from '../perform/stage.ts';
import { quickFolder } from './prepare.ts';

function memory(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'reprise-memory-')));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

it('uses a file system in memory if there is one', () => {
  const folder = memory();
  expect(quickFolder({}, folder)).toBe(folder);
  expect(readdirSync(folder)).toEqual([]);
  expect(quickFolder({}, join(folder, 'none'))).toBe(tmpdir());
});

it('uses TMPDIR if that is set', () => {
  expect(quickFolder({ TMPDIR: '/somewhere' }, memory())).toBe(tmpdir());
});

it('removes folders of processes that have ended, and keeps those in use', () => {
  const folder = memory();
  const self = thisProcess();
  const owners = {
    dead: { ...self, processStart: 'before' },
    alive: self,
    elsewhere: { ...self, processStart: 'before', host: 'another machine' },
  };
  for (const [name, owner] of Object.entries(owners)) {
    const stage = join(folder, `reprise-case-${name}`);
    mkdirSync(stage);
    writeFileSync(ownerFile(stage), JSON.stringify(owner));
  }
  quickFolder({}, folder);
  expect(readdirSync(folder).sort()).toEqual(['reprise-case-alive', 'reprise-case-elsewhere']);
});

it('removes folders without a known owner after a day, and keeps all others', () => {
  const folder = memory();
  for (const name of ['reprise-case-old', 'reprise-case-new', 'of-others']) mkdirSync(join(folder, name));
  const longAgo = new Date('2020-01-01');
  for (const name of ['reprise-case-old', 'of-others']) utimesSync(join(folder, name), longAgo, longAgo);
  quickFolder({}, folder);
  expect(readdirSync(folder).sort()).toEqual(['of-others', 'reprise-case-new']);
});
