import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestsOf } from '../../src/engine/history/digest.ts';
import { type Override, replay, type WhatIf } from '../../src/testing.ts';
import { type Project, recordedProject } from './recorded-project.ts';

let project: Project;
beforeAll(async () => {
  project = await recordedProject();
});
afterAll(() => project?.remove());

const ofFixture = (name: string, override: Override, from?: string) =>
  replay(join(project.root, 'cases', name), { override, from });

const onlyRun = ({ runs }: WhatIf) => {
  expect(runs).toHaveLength(1);
  const [run] = runs;
  if (!run) throw new Error('no run');
  return run;
};

/** Hash of all files below a folder. */
const hashOfFolder = (folder: string): string => {
  const hash = createHash('sha256');
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }).sort((a, b) =>
    join(a.parentPath, a.name) < join(b.parentPath, b.name) ? -1 : 1,
  )) {
    const file = join(entry.parentPath, entry.name);
    hash.update(file);
    if (entry.isFile()) hash.update(readFileSync(file));
  }
  return hash.digest('hex');
};

describe('a replay without overrides', () => {
  it.each([
    'endings/fail_fast',
    'endings/timeout',
    'endings/ctrl_c',
    'endings/crash_and_resume',
    'landing/two_runs',
  ])('matches the recording of %s', async name => {
    const { runs, notes } = await replay(name);
    expect(notes).toEqual([]);
    for (const { before, after, changed, marks } of runs) {
      expect(marks).toBe('exact');
      expect(changed).toEqual([]);
      expect(digestsOf(after)).toEqual(digestsOf(before));
    }
  });
});

describe('an overridden output', () => {
  it('turns a failure into a success, and shows which steps would have run next', async () => {
    const whatIf = await ofFixture('release', { outputs: { build: { version: '2' }, lint: {} } });
    const { changed, ended, marks, after, diff } = onlyRun(whatIf);
    expect(changed.map(({ step, after }) => [step, after?.status])).toEqual([
      ['build', 'completed'],
      ['publish', 'unfinished'],
      ['lint', 'completed'],
    ]);
    expect(diff).toContain('+ build    completed {"version":"2"}\n');
    expect(diff).toContain('- publish  skipped: dependency of build\n');
    expect(diff).toContain('+ publish  started; its end is not in the recording\n');
    expect(ended.after.status).toBe('unfinished');
    expect(marks).toBe('inconclusive');
    expect(whatIf.notes).toEqual([
      "run.publish: its end is not in the recording; set override.outputs['run.publish']",
    ]);
    expect(after.filter(({ step }) => step === 'publish').map(({ type }) => type)).toEqual(['step.started']);
  });

  it('completes the run if steps without a recording have one too', async () => {
    const outputs = { build: {}, 'run.publish': { url: 'x' }, lint: {} };
    const { ended, marks, diff } = onlyRun(await ofFixture('release', { outputs }));
    expect(ended.before).toMatchObject({ status: 'failed', error: { code: 'EXIT_NONZERO' } });
    expect(ended.after).toEqual({ status: 'completed', output: { publish: { url: 'x' }, lint: {} } });
    expect(marks).toBe('counterfactual');
    expect(diff).toContain('+ the run  completed {"publish":{"url":"x"},"lint":{}}\n');
  });

  it('applies to an agent that was cancelled in the recording', async () => {
    const whatIf = await replay('endings/fail_fast', {
      override: { outputs: { broken: {}, slow: 'All of it is done.' } },
    });
    const { ended, changed } = onlyRun(whatIf);
    expect(changed.map(({ step, before, after }) => [step, before?.status, after?.status])).toEqual([
      ['slow', 'cancelled', 'completed'],
      ['broken', 'failed', 'completed'],
    ]);
    expect(ended.after.output).toEqual({ slow: { text: 'All of it is done.' }, broken: {} });
  });

  it('keeps the recorded results of other functions', async () => {
    const unchanged = onlyRun(await ofFixture('quote', {}));
    expect(unchanged.marks).toBe('exact');
    const { changed, before } = onlyRun(await ofFixture('quote', { outputs: { total: { total: 7 } } }));
    expect(before).toEqual(unchanged.before);
    expect(changed).toMatchObject([{ step: 'total', after: { output: { total: 7 } } }]);
  });

  it('is refused if it is not valid for the step', async () => {
    await expect(
      replay('endings/fail_fast', { override: { outputs: { slow: 3, broken: {} } } }),
    ).rejects.toMatchObject({
      code: 'OUTPUT_INVALID',
      message:
        "override.outputs['slow'] is not a valid output of the step: an agent without an output schema returns text",
    });
  });
});

it('limits a failure to its run, so the other run lands as recorded', async () => {
  const { runs } = await replay('landing/two_runs', {
    override: { failures: { 'fix_guide.fix': 'no idea' } },
  });
  const runIn = (name: string) => runs.find(({ step }) => step === name);
  expect(runIn('fix_guide')).toMatchObject({
    marks: 'counterfactual',
    ended: { after: { status: 'failed', error: { message: 'no idea' } } },
  });
  expect(runIn('fix_guide')?.changed.at(-1)).toMatchObject({ step: 'land', after: { status: 'skipped' } });
  expect(runIn('fix_readme')).toMatchObject({ changed: [], ended: { after: { status: 'completed' } } });
});

it('runs steps that do not need the failed one with `on_failure: continue`', async () => {
  const override = { policy: 'continue', outputs: { lint: { warnings: 0 } } } as const;
  const { changed, ended } = onlyRun(await ofFixture('release', override));
  expect(changed).toMatchObject([
    { step: 'lint', before: { status: 'skipped' }, after: { status: 'completed', output: { warnings: 0 } } },
  ]);
  expect(ended.after.status).toBe('failed');
});

it('marks a run with another prompt as counterfactual, and names the step', async () => {
  const whatIf = await replay('landing/two_runs', {
    override: { prompts: { 'fix_guide.fix': 'Fix the guide.' } },
  });
  expect(whatIf.runs.map(({ step, marks }) => [step, marks]).sort()).toEqual([
    ['fix_guide', 'counterfactual'],
    ['fix_readme', 'exact'],
  ]);
  expect(whatIf.notes).toEqual(['fix_guide.fix: the prompt of fixer has changed since it was recorded']);
});

it('lets a step exceed its timeout with an overridden duration', async () => {
  const clock = { start: '2030-01-01T00:00:00Z', takes: { quick: '2m' } };
  const { changed, after } = onlyRun(await replay('endings/timeout', { override: { clock } }));
  expect(after[0]?.at).toMatch(/^2030-01-01T00:00:00/);
  expect(changed).toMatchObject([
    {
      step: 'quick',
      before: { status: 'completed' },
      after: { status: 'failed', error: { code: 'TIMEOUT' } },
    },
  ]);
});

it('applies overrides only from the point that `from` names', async () => {
  const outputs = { 'stopped.work': 'Too early.', 'resumed.work': 'Other.' };
  const { diff } = await replay('endings/ctrl_c', { override: { outputs }, from: 'resumed' });
  expect(diff).toContain('- work     completed {"text":"Worked."}\n');
  expect(diff).toContain('+ work     completed {"text":"Other."}\n');
  const { runs } = await replay('endings/crash_and_resume', {
    override: { failures: { 'killed.first': 'too early', 'resumed.second': 'boom' } },
    from: 'resumed.second',
  });
  expect(runs[0]?.changed).toMatchObject([{ step: 'second', after: { error: { message: 'boom' } } }]);
});

it.each<[string, Override, string]>([
  ['an unknown command of the case', { outputs: { 'fix_guid.fix': 1 } }, 'did you mean fix_guide.fix?'],
  ['an unknown step of the workflow', { outputs: { 'fix_guide.fxi': 1 } }, 'did you mean fix_guide.fix?'],
  ['an unknown policy', { policy: 'go-on' as 'continue' }, 'use one of fail-fast, finish-running, continue'],
  [
    'an invalid duration',
    { clock: { takes: { 'fix_guide.fix': 'long' } } },
    'use milliseconds, or a string such as 30s or 1h30m',
  ],
])('refuses an override with %s', async (_, override, hint) => {
  await expect(replay('landing/two_runs', { override })).rejects.toMatchObject({ code: 'USAGE', hint });
});

it('notes that a case differs from its recording even without overrides', async () => {
  // Its script writes to the database of the store, but this store is in memory.
  const { notes, ...whatIf } = await replay('endings/foreign_event');
  const { runId, marks } = onlyRun({ notes, ...whatIf });
  expect(notes).toContain(`run ${runId}: even without overrides, the replay differs from the recording`);
  expect(marks).toBe('inconclusive');
});

it('refuses a case without a recording', async () => {
  await expect(replay('composed/served_sessions')).rejects.toMatchObject({ code: 'USAGE' });
});

it('writes nothing to the case or the project', async () => {
  const before = hashOfFolder(join(project.root, 'cases'));
  const entries = readdirSync(project.root);
  await ofFixture('release', { outputs: { build: {} } });
  expect(hashOfFolder(join(project.root, 'cases'))).toBe(before);
  expect(readdirSync(project.root)).toEqual(entries);
});
