import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Question } from '../project/host.ts';
import { resumeCommand } from './resume.ts';
import { runCommand } from './run.ts';
import { temporaryProject, testIo } from './test-support.ts';

const gates = `
steps:
  - { id: first, approve: "First?" }
  - { id: second, needs: [first], approve: { message: "Second?", choices: [now, later] } }
  - { id: done, needs: [second], run: "echo \${{ steps.second.outputs.choice }} > done" }
`;

describe('a run that stops at a gate', () => {
  it('asks the person at the keyboard, gate after gate, and goes on', async () => {
    const root = temporaryProject({ 'gates.yaml': gates });
    const asked: Question[] = [];
    const answers = ['approve', 'later'];
    const io = testIo(root, {
      ask: async question => {
        asked.push(question);
        return answers[asked.length - 1];
      },
    });
    expect(await runCommand({ io }, { workflow: 'gates.yaml' })).toBe(0);
    expect(asked.map(({ step, message, choices }) => [step, message, choices])).toEqual([
      ['first', 'First?', ['approve', 'reject']],
      ['second', 'Second?', ['now', 'later']],
    ]);
    expect(readFileSync(join(root, 'done'), 'utf8')).toBe('later\n');
  });

  it('is left for later without an answer, and a resume asks again', async () => {
    const root = temporaryProject({ 'gates.yaml': gates });
    expect(
      await runCommand({ io: testIo(root, { ask: async () => undefined }) }, { workflow: 'gates.yaml' }),
    ).toBe(3);
    const io = testIo(root, { ask: async ({ choices }) => choices[0] });
    expect(await resumeCommand({ io }, {})).toBe(0);
    expect(readFileSync(join(root, 'done'), 'utf8')).toBe('now\n');
  });

  it('never asks when its output is for a program, or when nobody is there', async () => {
    const root = temporaryProject({ 'gates.yaml': gates });
    const io = testIo(root, { ask: async () => 'approve' });
    expect(await runCommand({ io }, { workflow: 'gates.yaml', json: true })).toBe(3);
    expect(await runCommand({ io: testIo(root) }, { workflow: 'gates.yaml' })).toBe(3);
    expect(existsSync(join(root, 'done'))).toBe(false);
  });
});
