import { expect, test } from 'vitest';
import { agentOf } from '../../../agents/test-support.ts';
import { policyOf } from './conversation.ts';

const agent = agentOf({ kind: 'claude', permissions: 'edit', allow: ['Bash(npm test)'], deny: ['WebFetch'] });

test('a step adds rules and may override the preset', () => {
  const step = { preset: 'read-only', allow: ['Bash(ls)', 'Bash(npm test)'], deny: ['Bash(rm *)'] } as const;
  expect(policyOf({ agent, step, checks: ['npm run lint'], readonly: false })).toEqual({
    agent: 'coder',
    isWritten: true,
    preset: 'read-only',
    allow: ['Bash(npm test)', 'Bash(ls)'],
    deny: ['WebFetch', 'Bash(rm *)'],
    checks: ['npm run lint'],
    otherwise: 'deny',
  });
});

test('the preset of the agent applies if the step has none', () => {
  expect(policyOf({ agent, checks: [], readonly: false }).preset).toBe('edit');
  const step = { allow: [], deny: [] };
  expect(
    policyOf({ agent: { ...agent, permissions: 'full' }, step, checks: [], readonly: false }).preset,
  ).toBe('full');
});

test('a read-only workspace forces the read-only preset', () => {
  const step = { preset: 'full', allow: [], deny: [] } as const;
  expect(policyOf({ agent, step, checks: [], readonly: true }).preset).toBe('read-only');
});

test('permissions that a program cannot enforce are refused', () => {
  const program = agentOf({ kind: 'command' });
  const step = { preset: 'edit', allow: [], deny: [] } as const;
  expect(policyOf({ agent: program, checks: [], readonly: true }).preset).toBe('read-only');
  expect(() => policyOf({ agent: program, step, checks: [], readonly: false })).toThrow('cannot be enforced');
  const written = { ...program, deny: ['Bash'] };
  expect(() => policyOf({ agent: written, checks: [], readonly: false })).toThrow('cannot be enforced');
});
