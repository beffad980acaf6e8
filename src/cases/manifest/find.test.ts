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
  throw new Error(`found ${name}`);
}

const some = [
  'cases/orchestration/concurrent_workers/concurrent_workers.toml',
  'cases/orchestration/concurrent_workers/concurrent_workers__init.vcr',
  'cases/orchestration/concurrent_workers/sessions/coder.a.0.jsonl',
  'cases/orchestration/conflict/conflict.toml',
  'cases/orchestration/deep/conflict/conflict.toml',
  'cases/alone/alone.toml',
];

describe('findCases', () => {
  it('finds all case files that are named after their folder, sorted by group and name', () => {
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

  it('finds nothing without a folder of cases', () => {
    expect(findCases({ cwd })).toEqual({ cases: [], orphans: [] });
  });

  it('finds cases by name in every group', () => {
    write(...some);
    expect(idsOf('alone')).toEqual(['alone']);
    expect(idsOf('conflict')).toEqual(['orchestration/conflict', 'orchestration/deep/conflict']);
    expect(idsOf('orchestration/conflict')).toEqual(['orchestration/conflict']);
  });

  it('finds cases by group', () => {
    write(...some);
    expect(idsOf('orchestration')).toEqual([
      'orchestration/concurrent_workers',
      'orchestration/conflict',
      'orchestration/deep/conflict',
    ]);
    expect(idsOf('orchestration/deep/')).toEqual(['orchestration/deep/conflict']);
  });

  it('finds cases by pattern', () => {
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

  it('finds cases by path, even outside of the folder of cases', () => {
    write(...some, 'elsewhere/other/other.toml');
    expect(idsOf('cases/alone')).toEqual(['alone']);
    expect(idsOf('./cases/orchestration/deep')).toEqual(['orchestration/deep/conflict']);
    expect(idsOf('cases/orchestration/conflict/conflict.toml')).toEqual(['orchestration/conflict']);
    expect(idsOf(join(cwd, 'elsewhere/other/other.toml'))).toEqual(['other']);
    expect(idsOf('cases')).toHaveLength(4);
  });

  it('returns each case once, in order', () => {
    write(...some);
    expect(idsOf('orchestration/conflict', 'conflict', 'alone', 'cases/alone')).toEqual([
      'alone',
      'orchestration/conflict',
      'orchestration/deep/conflict',
    ]);
  });

  it('refuses an unknown name and suggests others', () => {
    write(...some, 'README/notes.md');
    expect(refusal('conflcit')).toMatchInlineSnapshot(
      `"CASE_NOT_FOUND: no test case named \`conflcit\` (did you mean \`conflict\`?)"`,
    );
    expect(refusal('orchestration/conflit')).toMatchInlineSnapshot(
      `"CASE_NOT_FOUND: no test case named \`orchestration/conflit\` (did you mean \`orchestration/conflict\`?)"`,
    );
    expect(refusal('something')).toMatchInlineSnapshot(
      `"CASE_NOT_FOUND: no test case named \`something\` (cases: alone, orchestration/concurrent_workers, orchestration/conflict, orchestration/deep/conflict)"`,
    );
    expect(refusal('other/*')).toMatchInlineSnapshot(
      `"CASE_NOT_FOUND: no test case named \`other/*\` (cases: alone, orchestration/concurrent_workers, orchestration/conflict, orchestration/deep/conflict)"`,
    );
    expect(refusal('README')).toMatchInlineSnapshot(
      `"CASE_NOT_FOUND: no test case named \`README\` (cases: alone, orchestration/concurrent_workers, orchestration/conflict, orchestration/deep/conflict)"`,
    );
  });

  it('explains how to create the first case', () => {
    expect(refusal('first')).toMatchInlineSnapshot(
      `"CASE_NOT_FOUND: no test case named \`first\` (capture one from a run: reprise capture <run> <name>; or write cases/<group>/<name>/<name>.toml)"`,
    );
  });
});

describe('the orphans of a search', () => {
  const explained = () => findCases({ cwd }).orphans.map(explainOrphan);

  it('include recordings without a case file', () => {
    write(
      ...some,
      'cases/old/gone/gone.score',
      'cases/old/gone/gone__a.vcr',
      'cases/old/gone/sessions/a.b.0.jsonl',
    );
    expect(explained()).toMatchInlineSnapshot(`
      [
        "cases/old/gone has recordings (gone.score, gone__a.vcr) but no case file; write cases/old/gone/gone.toml, or delete the recordings",
      ]
    `);
    expect(refusal('gone')).toMatchInlineSnapshot(
      `"CASE_NOT_FOUND: no test case named \`gone\` (cases/old/gone has recordings (gone.score, gone__a.vcr) but no case file; write cases/old/gone/gone.toml, or delete the recordings)"`,
    );
  });

  it('include case files that are not named after their folder', () => {
    write('cases/landing/land.toml', 'cases/landing/land.snap', 'cases/loose.toml', 'cases/cases.toml');
    expect(explained()).toMatchInlineSnapshot(`
      [
        "cases/cases.toml is not at the path of a case file; move it to cases/cases/cases.toml",
        "cases/landing/land.toml is not at the path of a case file; move it to cases/landing/landing.toml",
      ]
    `);
  });

  it('include recordings next to the case folders', () => {
    write('cases/lost__worker_a.vcr', 'cases/alone/alone.toml');
    expect(explained()).toMatchInlineSnapshot(`
      [
        "cases has recordings (lost__worker_a.vcr) but no case file; write cases/lost/lost.toml, or delete the recordings",
      ]
    `);
    expect(idsOf('cases')).toEqual(['alone']);
  });

  it('include those in a folder that was searched by path', () => {
    write(...some, 'cases/old/gone/gone.score');
    const { cases, orphans } = findCases({ names: ['cases/old'], cwd });
    expect(cases).toEqual([]);
    expect(orphans.map(({ displayFolder }) => displayFolder)).toEqual(['cases/old/gone']);
  });

  it('do not include folders without recordings', () => {
    write(...some, 'cases/shared/sessions/a.jsonl', 'cases/orchestration/README.md');
    expect(explained()).toEqual([]);
  });
});
