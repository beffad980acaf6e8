import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { gitBackend } from '../../src/cases/explore/backends.ts';
import { raceOf } from '../../src/cases/explore/command.ts';
import { exploreCase } from '../../src/cases/explore/explore.ts';
import { CaseExplorer } from '../../src/cases/explore/explorer.ts';
import { prepareCase } from '../../src/cases/explore/prepare.ts';
import { keepRace, racesOf } from '../../src/cases/explore/race-file.ts';
import { oneSchedule, playRace, playRaces, raceFailure } from '../../src/cases/explore/races.ts';
import { findCases } from '../../src/cases/manifest/find.ts';
import { readCase } from '../../src/cases/manifest/load.ts';
import { testContext } from '../../src/cli/other-commands.ts';
import { runProgram } from '../../src/cli/program.ts';
import { rounds } from '../support/rounds.ts';

const invariant = (run: string) =>
  `\n[[invariants]]\nname = "the guide comes last"\nrun = '''\n${run}\n'''\n`;
const guideComesLast = `test "$(git log -1 --name-only --format= main)" = guide.md`;

let folder: string;
let plain: string;
const caseFile = () => join(folder, 'cases/landing/two_runs/two_runs.toml');
const context = () => testContext({ env: process.env, cwd: folder }, runProgram);

function found() {
  const [only] = findCases({ names: ['landing/two_runs'], cwd: folder }).cases;
  if (!only) throw new Error('no such case');
  return only;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reprise-race-'));
  cpSync('cases/landing/two_runs', join(folder, 'cases/landing/two_runs'), { recursive: true });
  symlinkSync(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'));
  plain = readFileSync(caseFile(), 'utf8');
  writeFileSync(caseFile(), plain + invariant(guideComesLast));
  const options = { ...oneSchedule, schedules: 30, on: 'git' } as const;
  const { failure } = await exploreCase(found(), options, context());
  if (!failure) throw new Error('nothing was found');
  keepRace(found().folder, raceOf(found(), failure));
}, 300_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const times = rounds(100);

it(`a saved race fails in the same way ${times} times`, async () => {
  const [race] = racesOf(found().folder, folder);
  if (!race) throw new Error('no race was saved');
  const prepared = await prepareCase(found(), readCase(found()), context());
  try {
    const explorer = new CaseExplorer(gitBackend(prepared), oneSchedule);
    for (let time = 0; time < times; time++) {
      const { outcome } = await playRace(explorer, race);
      expect([time, outcome]).toEqual([
        time,
        { kind: 'there', message: 'the guide comes last does not hold' },
      ]);
    }
  } finally {
    prepared.close();
  }
});

it('a saved race passes once the bug is fixed', async () => {
  writeFileSync(caseFile(), plain + invariant('true'));
  const [played] = await playRaces(found(), context());
  expect(played?.outcome).toEqual({ kind: 'fixed' });
});

it('a saved race that no longer fits the code is reported, with the command that finds it again', async () => {
  const [race] = racesOf(found().folder, folder);
  if (!race) throw new Error('no race was saved');
  const turns = race.turns.map(turn => (turn.op === 'land.move' ? { ...turn, op: 'land.jump' } : turn));
  const [kept = ''] = [keepRace(found().folder, { ...race, what: 'of older code', turns })];
  writeFileSync(caseFile(), plain + invariant('true'));
  const [played] = await playRaces(found(), context(), 'of-older-code');
  expect(kept).toContain('of-older-code.score');
  expect(played && raceFailure(played.race, played.outcome)).toEqual({
    kind: 'stale',
    message: expect.stringMatching(
      /^race of-older-code no longer fits the code: its schedule contains land\.jump of .*, which no longer happens$/,
    ),
    hint: 'delete the file and explore again: rm cases/landing/two_runs/races/of-older-code.score && reprise explore landing/two_runs',
    file: 'cases/landing/two_runs/races/of-older-code.score',
  });
});
