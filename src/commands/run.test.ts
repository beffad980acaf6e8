import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ApprovalQuestion } from '../project/host.ts';
import { resumeCommand } from './resume.ts';
import { runCommand } from './run.ts';
import { temporaryProject, testIo } from './test-support.ts';

const approvals = `
steps:
  - { id: first, approve: "First?" }
  - { id: second, needs: [first], approve: { message: "Second?", choices: [now, later] } }
  - { id: done, needs: [second], run: "echo \${{ steps.second.outputs.choice }} > done" }
`;

describe('a run that waits for an approval', () => {
  it('asks the user at the keyboard for one approval after another and continues', async () => {
    const root = temporaryProject({ 'approvals.yaml': approvals });
    const asked: ApprovalQuestion[] = [];
    const answers = ['approve', 'later'];
    const io = testIo(root, {
      ask: async question => {
        asked.push(question);
        return answers[asked.length - 1];
      },
    });
    expect(await runCommand({ io }, { workflow: 'approvals.yaml' })).toBe(0);
    expect(asked.map(({ step, message, choices }) => [step, message, choices])).toEqual([
      ['first', 'First?', ['approve', 'reject']],
      ['second', 'Second?', ['now', 'later']],
    ]);
    expect(readFileSync(join(root, 'done'), 'utf8')).toBe('later\n');
  });

  it('keeps waiting without an answer, and a resume asks again', async () => {
    const root = temporaryProject({ 'approvals.yaml': approvals });
    expect(
      await runCommand({ io: testIo(root, { ask: async () => undefined }) }, { workflow: 'approvals.yaml' }),
    ).toBe(3);
    const io = testIo(root, { ask: async ({ choices }) => choices[0] });
    expect(await resumeCommand({ io }, {})).toBe(0);
    expect(readFileSync(join(root, 'done'), 'utf8')).toBe('now\n');
  });

  it('never asks with --json or without a keyboard', async () => {
    const root = temporaryProject({ 'approvals.yaml': approvals });
    const io = testIo(root, { ask: async () => 'approve' });
    expect(await runCommand({ io }, { workflow: 'approvals.yaml', json: true })).toBe(3);
    expect(await runCommand({ io: testIo(root) }, { workflow: 'approvals.yaml' })).toBe(3);
    expect(existsSync(join(root, 'done'))).toBe(false);
  });
});
