import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { journalFolders, journalsFolder, noteSize, removeOldJournals } from './retention.ts';

function stateWith(journals: readonly { readonly run?: string; readonly bytes?: number }[]): string {
  const stateDir = mkdtempSync(join(tmpdir(), 'reprise-journals-'));
  onTestFinished(() => rmSync(stateDir, { recursive: true }));
  for (const [index, { run, bytes = 10 }] of journals.entries()) {
    const folder = join(journalsFolder(stateDir), String(index));
    mkdirSync(join(folder, 'sessions'), { recursive: true });
    writeFileSync(join(folder, 'sessions', 'a.jsonl'), 'x'.repeat(bytes));
    if (run !== undefined) writeFileSync(join(folder, 'run'), run);
  }
  return stateDir;
}

const kept = (stateDir: string) => journalFolders(stateDir).map(folder => basename(folder));

test('removeOldJournals makes room for one more run and keeps all journals of a run together', () => {
  const stateDir = stateWith([{ run: 'a' }, { run: 'b' }, { run: 'c' }, { run: 'b' }, { run: 'c' }]);
  removeOldJournals(stateDir, { mostRuns: 3, mostBytes: 1000 });
  expect(kept(stateDir)).toEqual(['1', '2', '3', '4']);
  removeOldJournals(stateDir, { mostRuns: 2, mostBytes: 1000 });
  expect(kept(stateDir)).toEqual(['2', '4']);
});

test('removeOldJournals removes the oldest journals if they are too large in total', () => {
  const stateDir = stateWith([{ run: 'a', bytes: 100 }, { run: 'b', bytes: 300 }, { bytes: 300 }]);
  for (const folder of journalFolders(stateDir)) noteSize(folder);
  removeOldJournals(stateDir, { mostRuns: 10, mostBytes: 650 });
  expect(kept(stateDir)).toEqual(['1', '2']);
});

test('removeOldJournals keeps a journal that is being written', () => {
  const stateDir = stateWith([{ run: 'a' }, { run: 'b' }, { run: 'c' }]);
  const [oldest = '', second = ''] = journalFolders(stateDir);
  renameSync(oldest, join(oldest, '..', `0-Z-${process.pid}`));
  renameSync(second, join(second, '..', `1-Z-${process.pid}-0`));
  noteSize(join(second, '..', `1-Z-${process.pid}-0`));
  removeOldJournals(stateDir, { mostRuns: 1, mostBytes: 1000 });
  expect(kept(stateDir)).toEqual([`0-Z-${process.pid}`]);
});

test('removeOldJournals does nothing in a project without journals', () => {
  removeOldJournals(join(tmpdir(), 'reprise-no-such-state'));
  expect(journalFolders(join(tmpdir(), 'reprise-no-such-state'))).toEqual([]);
});
