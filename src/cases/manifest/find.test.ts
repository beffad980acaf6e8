import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RepriseError } from '../../core/errors.ts';
import { explainOrphan, findCases, idOf } from './find.ts';

let cwd: string;

beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'reprise-cases-'));
});

afterEach(() => {
  rmSync(cwd, { recursive: true, force: true });
});

function write(...files: readonly string[]): void {
  for (const file of files) {
    mkdirSync(dirname(join(cwd, file)), { recursive: true });
    writeFileSync(join(cwd, file), '');
  }
}

const idsOf = (...names: readonly string[]): readonly string[] => findCases({ names, cwd }).cases.map(idOf);

function refusal(name: string): string {
  try {
    findCases({ names: [name], cwd });
  } catch (error) {
    if (error instanceof RepriseError) return `${error.code}: ${error.message} (${error.hint})`;
    throw error;
  }
  throw new Error('it was found');
}

const some = [
  'cases/orchestration/concurrent_workers/concurrent_workers.toml',
  'cases/orchestration/concurrent_workers/concurrent_workers__init.vcr',
  'cases/orchestration/concurrent_workers/sessions/coder.a.0.jsonl',
  'cases/orchestration/conflict/conflict.toml',
  'cases/orchestration/deep/conflict/conflict.toml',
  'cases/alone/alone.toml',
];

describe('cases', () => {
  it('are all that are named like their folder, by group and name', () => {
    write(...some, 'cases/node_modules/x/x.toml', 'cases/.hidden/.hidden.toml', 'elsewhere/other/other.toml');
    const { cases, orphans } = findCases({ cwd });
    expect(cases.map(idOf)).toEqual([
      'alone',
      'orchestration/concurrent_workers',
      'orchestration/conflict',
      'orchestration/deep/conflict',
    ]);
    expect(orphans).toEqual([]);
    expect(cases[1]).toEqual({
      name: 'concurrent_workers',
      group: 'orchestration',
      folder: join(cwd, 'cases/orchestration/concurrent_workers'),
      file: join(cwd, 'cases/orchestration/concurrent_workers/concurrent_workers.toml'),
      displayFile: 'cases/orchestration/concurrent_workers/concurrent_workers.toml',
    });
  });

  it('are none where there is no folder of cases', () => {
    expect(findCases({ cwd })).toEqual({ cases: [], orphans: [] });
  });

  it('are found by name, in every group', () => {
    write(...some);
    expect(idsOf('alone')).toEqual(['alone']);
    expect(idsOf('conflict')).toEqual(['orchestration/conflict', 'orchestration/deep/conflict']);
    expect(idsOf('orchestration/conflict')).toEqual(['orchestration/conflict']);
  });

  it('are found by group', () => {
    write(...some);
    expect(idsOf('orchestration')).toEqual([
      'orchestration/concurrent_workers',
      'orchestration/conflict',
      'orchestration/deep/conflict',
    ]);
    expect(idsOf('orchestration/deep/')).toEqual(['orchestration/deep/conflict']);
  });

  it('are found by pattern', () => {
    write(...some);
    expect(idsOf('orchestration/con*')).toEqual([
      'orchestration/concurrent_workers',
      'orchestration/conflict',
    ]);
    expect(idsOf('cases/orchestration/con*')).toEqual([
      'orchestration/concurrent_workers',
      'orchestration/conflict',
    ]);
    expect(idsOf('*_workers')).toEqual(['orchestration/concurrent_workers']);
    expect(idsOf('**/conflict')).toEqual(['orchestration/conflict', 'orchestration/deep/conflict']);
  });

  it('are found by path, also outside of the folder of cases', () => {
    write(...some, 'elsewhere/other/other.toml');
    expect(idsOf('cases/alone')).toEqual(['alone']);
    expect(idsOf('./cases/orchestration/deep')).toEqual(['orchestration/deep/conflict']);
    expect(idsOf('cases/orchestration/conflict/conflict.toml')).toEqual(['orchestration/conflict']);
    expect(idsOf(join(cwd, 'elsewhere/other/other.toml'))).toEqual(['other']);
    expect(idsOf('cases')).toHaveLength(4);
  });

  it('are given once, sorted, however often they were named', () => {
    write(...some);
    expect(idsOf('orchestration/conflict', 'conflict', 'alone', 'cases/alone')).toEqual([
      'alone',
      'orchestration/conflict',
      'orchestration/deep/conflict',
    ]);
  });

  it('that are unknown are refused with what was meant', () => {
    write(...some, 'README/notes.md');
    expect(refusal('conflcit')).toMatchInlineSnapshot(
      `"CASE_NOT_FOUND: there is no test case \`conflcit\` (did you mean \`conflict\`?)"`,
    );
    expect(refusal('orchestration/conflit')).toMatchInlineSnapshot(
      `"CASE_NOT_FOUND: there is no test case \`orchestration/conflit\` (did you mean \`orchestration/conflict\`?)"`,
    );
    expect(refusal('something')).toMatchInlineSnapshot(
      `"CASE_NOT_FOUND: there is no test case \`something\` (cases: alone, orchestration/concurrent_workers, orchestration/conflict, orchestration/deep/conflict)"`,
    );
    expect(refusal('other/*')).toMatchInlineSnapshot(
      `"CASE_NOT_FOUND: there is no test case \`other/*\` (cases: alone, orchestration/concurrent_workers, orchestration/conflict, orchestration/deep/conflict)"`,
    );
    expect(refusal('README')).toMatchInlineSnapshot(
      `"CASE_NOT_FOUND: there is no test case \`README\` (cases: alone, orchestration/concurrent_workers, orchestration/conflict, orchestration/deep/conflict)"`,
    );
  });

  it('that are unknown where there are none are refused with how to write one', () => {
    expect(refusal('first')).toMatchInlineSnapshot(
      `"CASE_NOT_FOUND: there is no test case \`first\` (write one as cases/<group>/<name>/<name>.toml)"`,
    );
  });
});

describe('orphans', () => {
  const explained = () => findCases({ cwd }).orphans.map(explainOrphan);

  it('are recordings without a case file', () => {
    write(
      ...some,
      'cases/old/gone/gone.score',
      'cases/old/gone/gone__a.vcr',
      'cases/old/gone/sessions/a.b.0.jsonl',
    );
    expect(explained()).toMatchInlineSnapshot(`
      [
        "cases/old/gone has recordings (gone.score, gone__a.vcr) and no case file: write cases/old/gone/gone.toml, or remove them",
      ]
    `);
    expect(refusal('gone')).toMatchInlineSnapshot(
      `"CASE_NOT_FOUND: there is no test case \`gone\` (cases/old/gone has recordings (gone.score, gone__a.vcr) and no case file: write cases/old/gone/gone.toml, or remove them)"`,
    );
  });

  it('are case files that are not named like their folder', () => {
    write('cases/landing/land.toml', 'cases/landing/land.snap', 'cases/loose.toml', 'cases/cases.toml');
    expect(explained()).toMatchInlineSnapshot(`
      [
        "cases/cases.toml is not where case files are looked for: move it to cases/cases/cases.toml",
        "cases/landing/land.toml is not where case files are looked for: move it to cases/landing/landing.toml",
      ]
    `);
  });

  it('are recordings that lie among the folders of cases', () => {
    write('cases/lost__worker_a.vcr', 'cases/alone/alone.toml');
    expect(explained()).toMatchInlineSnapshot(`
      [
        "cases has recordings (lost__worker_a.vcr) and no case file: write cases/lost/lost.toml, or remove them",
      ]
    `);
    expect(idsOf('cases')).toEqual(['alone']);
  });

  it('are reported where a folder of them was named', () => {
    write(...some, 'cases/old/gone/gone.score');
    const { cases, orphans } = findCases({ names: ['cases/old'], cwd });
    expect(cases).toEqual([]);
    expect(orphans.map(({ displayFolder }) => displayFolder)).toEqual(['cases/old/gone']);
  });

  it('are not what has nothing recorded', () => {
    write(...some, 'cases/shared/sessions/a.jsonl', 'cases/orchestration/README.md');
    expect(explained()).toEqual([]);
  });
});
