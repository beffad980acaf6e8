import { describe, expect, test } from 'vitest';
import type { FinishedWorker, WorkNote } from '../../../src/engine/step/contract.ts';
import type { SelectRule } from '../../../src/workflow/model.ts';
import { agentBody, agentOf, command, pick, scripted, type WorkLab, workLab } from './support.ts';

const rule = (given: Partial<SelectRule>): SelectRule => ({ gates: [], ...given });

/** Runs one agent per content, each in its own workspace. */
async function candidates(lab: WorkLab, contents: readonly string[]): Promise<readonly FinishedWorker[]> {
  const done: FinishedWorker[] = [];
  for (const [worker, content] of contents.entries()) {
    lab.define(scripted([{ write: { path: 'b.txt', content } }, { say: `I wrote ${content.trim()}.` }]));
    const unit = lab.unit(agentBody(), { worker });
    const end = await unit.work();
    if (end.kind !== 'completed') throw new Error(JSON.stringify(end));
    const [created] = unit.of('workspace.created');
    done.push({
      worker,
      output: end.output,
      workspace: created?.path,
      branch: created?.branch,
      base: created?.base,
      commit: unit.of('workspace.saved')[0]?.commit,
    });
  }
  return done;
}

const made = (notes: readonly WorkNote[]) =>
  notes.flatMap(note => (note.type === 'selection.made' ? [note.data] : []))[0];

describe('gates', () => {
  test('select the candidate that passes', async () => {
    const lab = await workLab();
    const notes: WorkNote[] = [];
    const all = await candidates(lab, ['bad\n', 'good\n', 'bad\n']);
    const end = await pick(lab, {
      rule: rule({ gates: [command('grep -q good b.txt')] }),
      candidates: all,
      notes,
    });
    expect(end).toEqual({ kind: 'completed', output: { winner: 1 } });
    expect(made(notes)).toEqual({
      winner: 1,
      by: 'gates',
      candidates: [
        { worker: 0, passed: false, reason: 'the gate `grep -q good b.txt` exited with code 1' },
        { worker: 1, passed: true },
        { worker: 2, passed: false, reason: 'the gate `grep -q good b.txt` exited with code 1' },
      ],
    });
  });

  test('fail the step with every reason if no candidate passes', async () => {
    const lab = await workLab();
    const notes: WorkNote[] = [];
    const all = await candidates(lab, ['a\n', 'b\n']);
    const end = await pick(lab, { rule: rule({ gates: [command('exit 4')] }), candidates: all, notes });
    expect(end).toMatchObject({
      kind: 'failed',
      error: {
        code: 'NO_CANDIDATE',
        message:
          'none of the 2 candidates passed\n0: the gate `exit 4` exited with code 4\n1: the gate `exit 4` exited with code 4',
        hint: expect.any(String),
      },
    });
    expect(notes).toEqual([]);
  });
});

describe('a rank command', () => {
  test('selects the highest score, and the first among equals', async () => {
    const lab = await workLab();
    const all = await candidates(lab, ['1\n', '7\n', '7\n', '-3\n']);
    const notes: WorkNote[] = [];
    const rank = command('echo noise; echo also >&2; cat b.txt; echo late >&2');
    expect(await pick(lab, { rule: rule({ rank }), candidates: all, notes })).toMatchObject({
      output: { winner: 1 },
    });
    expect(made(notes)).toMatchObject({
      by: 'rank',
      candidates: [{ score: 1 }, { score: 7 }, { score: 7 }, { score: -3 }],
    });
  });

  test('rejects a candidate if it fails or prints no number', async () => {
    const lab = await workLab();
    const all = await candidates(lab, ['NaN\n', '0x10\n', 'fail\n', '-5\n']);
    const notes: WorkNote[] = [];
    const rank = command('cat b.txt; ! grep -q fail b.txt');
    expect(await pick(lab, { rule: rule({ rank }), candidates: all, notes })).toMatchObject({
      output: { winner: 3 },
    });
    expect(made(notes)?.candidates.map(({ passed, reason }) => reason ?? passed)).toEqual([
      'the rank command printed "NaN" instead of a number',
      'the rank command printed "0x10" instead of a number',
      'the rank command `cat b.txt; ! grep -q fail b.txt` exited with code 1',
      true,
    ]);
  });
});

describe('a judge', () => {
  /** A judge that records its prompts and gives these answers in order. */
  const judgeThat = (lab: WorkLab, ...answers: readonly string[]) =>
    agentOf({
      name: 'judge',
      command: lab.program(`
        import fs from 'node:fs';
        const file = ${JSON.stringify(`${lab.git.folder}/asked`)};
        const n = fs.existsSync(file) ? fs.readFileSync(file, 'utf8').split('<<end>>').length - 1 : 0;
        fs.appendFileSync(file, fs.readFileSync(0, 'utf8') + fs.readdirSync('.').join() + '<<end>>');
        console.log(${JSON.stringify(answers)}[n]);`),
    });
  const asked = (lab: WorkLab) =>
    lab.git.gitAt(lab.git.folder, 'grep', '--no-index', '-h', '', '--', 'asked');

  test('sees the answers and changes of the candidates, and its choice counts', async () => {
    const lab = await workLab();
    const all = await candidates(lab, ['aaa\n', 'bbb\n', 'ccc\n']);
    lab.define(judgeThat(lab, '{"winner": 2, "reason": "It is shorter."}'));
    const notes: WorkNote[] = [];
    const judge = { agent: 'judge', prompt: () => 'Prefer the shortest.' };
    const gates = [command('! grep -q bbb b.txt')];
    expect(await pick(lab, { rule: rule({ gates, judge }), candidates: all, notes })).toEqual({
      kind: 'completed',
      output: { winner: 2 },
    });
    expect(made(notes)).toMatchObject({ winner: 2, by: 'judge', reason: 'It is shorter.' });
    expect(notes.map(({ type }) => type)).toEqual(['session.started', 'session.ended', 'selection.made']);
    const prompt = asked(lab);
    expect(prompt).toContain('Fix it.');
    expect(prompt).toContain('Prefer the shortest.');
    expect(prompt).toContain('+aaa');
    expect(prompt).toContain('I wrote ccc.');
    expect(prompt).not.toContain('bbb');
    expect(prompt).toContain('candidate_0.diff,candidate_0.json,candidate_2.diff,candidate_2.json');
  });

  test('gets one more chance after an invalid answer', async () => {
    const lab = await workLab();
    const all = await candidates(lab, ['a\n', 'b\n']);
    lab.define(judgeThat(lab, '{"winner": 9, "reason": "no"}', '{"winner": 1, "reason": "yes"}'));
    expect(await pick(lab, { rule: rule({ judge: { agent: 'judge' } }), candidates: all })).toMatchObject({
      output: { winner: 1 },
    });
    expect(asked(lab)).toContain('Your answer cannot be used');
    lab.define(judgeThat(lab, 'x', 'x', 'I cannot decide.', 'Really.'));
    expect(await pick(lab, { rule: rule({ judge: { agent: 'judge' } }), candidates: all })).toMatchObject({
      kind: 'failed',
      error: {
        code: 'OUTPUT_INVALID',
        message: expect.stringContaining('the judge judge did not choose a candidate'),
      },
    });
  });

  test('is not asked if only one candidate is left', async () => {
    const lab = await workLab();
    const all = await candidates(lab, ['a\n', 'b\n']);
    lab.define(judgeThat(lab, 'x'));
    const gates = [command('grep -q b b.txt')];
    expect(
      await pick(lab, { rule: rule({ gates, judge: { agent: 'judge' } }), candidates: all }),
    ).toMatchObject({
      output: { winner: 1 },
    });
  });
});
