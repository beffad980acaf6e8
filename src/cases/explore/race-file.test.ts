import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { keepRace, parseRace, type Race, racesFolder, racesOf, writeRace } from './race-file.ts';

const race: Race = {
  case: 'workers/two',
  what: 'claimed twice',
  message: 'worker_b claimed one while worker_a was working on it',
  policy: 'pct 3',
  seed: 7,
  isCalm: true,
  crashes: [{ step: 'worker_a', after: 12 }],
  faults: [{ kind: 'git-lock', step: 'worker_b', nth: 2 }],
  turns: [
    { lane: 'worker_a/worker#0', op: 'tasks.read' },
    { lane: 'worker_a/worker#0', op: 'claims.list' },
    { lane: 'worker_b/worker#0', op: 'tasks.read' },
  ],
};

describe('a race file', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'reprise-race-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('survives a round trip, with consecutive moves of a lane on one line', () => {
    const text = writeRace(race);
    expect(parseRace({ file: 'x.score', text })).toEqual(race);
    expect(text.trim().split('\n')).toHaveLength(3);
  });

  it('gets a unique name, and the same race is saved once', () => {
    const first = keepRace(folder, race);
    const again = keepRace(folder, race);
    const other = keepRace(folder, { ...race, seed: 8 });
    expect([first, again, other].map(file => file.slice(folder.length))).toEqual([
      '/races/claimed-twice.score',
      '/races/claimed-twice.score',
      '/races/claimed-twice-2.score',
    ]);
    expect(racesOf(folder, folder).map(({ name, displayFile }) => [name, displayFile])).toEqual([
      ['claimed-twice-2', 'races/claimed-twice-2.score'],
      ['claimed-twice', 'races/claimed-twice.score'],
    ]);
  });

  it('is rejected with the line of the problem', () => {
    keepRace(folder, race);
    const [header = ''] = writeRace(race).split('\n');
    writeFileSync(join(racesFolder(folder), 'broken.score'), `${header}\n{"lane":"a"}\n`);
    expect(() => racesOf(folder, folder)).toThrow('races/broken.score:2: op: expected');
    writeFileSync(join(racesFolder(folder), 'broken.score'), header.replace('"format":1', '"format":9'));
    expect(() => racesOf(folder, folder)).toThrow('format');
  });
});
