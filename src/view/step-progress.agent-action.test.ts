import { describe, expect, it } from 'vitest';
import type { AgentEvent } from '../agents/session.ts';
import { agentAction } from './step-progress.ts';

const cases: readonly (readonly [AgentEvent, string | undefined])[] = [
  [{ type: 'tool-start', id: '1', name: 'Edit', input: { file_path: 'src/a.ts' } }, 'Edit src/a.ts'],
  [{ type: 'tool-start', id: '1', name: 'Bash', input: { command: 'npm test\nrm -rf x' } }, 'Bash npm test'],
  [{ type: 'tool-start', id: '1', name: 'TodoWrite', input: {} }, 'TodoWrite'],
  [{ type: 'tool-start', id: '1', name: 'Bash', input: {}, title: 'Run the tests' }, 'Run the tests'],
  [{ type: 'text', text: '\u001B[31mred\u001B[0m\nsecond line' }, 'red'],
  [{ type: 'text', text: '\u001B]0;title\u0007hi\u202E there' }, 'hi there'],
  [{ type: 'text', text: ' \n' }, undefined],
  [{ type: 'thought', text: 'Hm.' }, 'Hm.'],
  [
    {
      type: 'permission',
      id: '1',
      tool: 'Bash',
      input: { command: 'ls' },
      decision: { kind: 'deny', message: '' },
    },
    'denied: Bash ls',
  ],
  [{ type: 'permission', id: '1', tool: 'Bash', input: {}, decision: { kind: 'allow' } }, undefined],
  [{ type: 'limit', reason: 'plan used up' }, 'reached a limit: plan used up'],
  [{ type: 'tool-end', id: '1', ok: true }, undefined],
];

describe('the action of an agent', () => {
  it.each(cases)('describes %j', (event, text) => {
    expect(agentAction(event)).toBe(text);
  });

  it('leaves the path of the workspace out', () => {
    const action = (command: string) =>
      agentAction({ type: 'tool-start', id: '1', name: 'Bash', input: { command } }, '/work/fix');
    expect(action('diff /work/fix/a.ts /work/fix/b.ts')).toBe('Bash diff a.ts b.ts');
    expect(action('cat /work/fixed/a.ts')).toBe('Bash cat /work/fixed/a.ts');
  });
});
