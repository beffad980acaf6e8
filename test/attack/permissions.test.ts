import { describe, expect, it } from 'vitest';
import { agentProject } from '../e2e/agent-project.ts';

const limit = 60_000;

/** Program that speaks the protocol of Claude Code: asks for each tool of `asks`, notes the rulings and its arguments. */
const claudeStandIn = (asks: string, work = '') => `
import { appendFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
const print = message => process.stdout.write(JSON.stringify(message) + '\\n');
const asks = ${asks};
appendFileSync(process.env.MARKS, 'strict ' + process.argv.includes('--strict-mcp-config') + '\\n');
print({ type: 'system', subtype: 'init', session_id: 's', model: 'm', cwd: '.' });
let at = 0;
const next = () => {
  const ask = asks[at];
  if (ask) print({ type: 'control_request', request_id: 'r' + at, request: { subtype: 'can_use_tool', tool_name: ask[0], input: ask[1] } });
  else {
    ${work}
    print({ type: 'result', subtype: 'success', is_error: false, result: 'done', session_id: 's', total_cost_usd: 0, usage: { input_tokens: 1, output_tokens: 1 } });
  }
};
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.type === 'control_request') print({ type: 'control_response', response: { subtype: 'success', request_id: message.request_id, response: {} } });
  else if (message.type === 'user') next();
  else {
    appendFileSync(process.env.MARKS, asks[at][0] + ' ' + (asks[at][1].file_path ?? asks[at][1].pattern) + ' ' + message.response.response.behavior + '\\n');
    at++;
    next();
  }
}
`;

describe('an agent with the preset edit', () => {
  it('cannot edit files that decide which code runs later, whatever is allowed', {
    timeout: limit,
  }, async () => {
    const files = [
      'reprise.yaml',
      'sub/REPRISE.yaml',
      '.mcp.json',
      '.reprise/agents/x.md',
      '.worktreeinclude',
      'a.txt',
    ];
    const asks = files.map(file_path => ['Edit', { file_path }]);
    const project = agentProject({
      files: {
        'claude.mjs': claudeStandIn(JSON.stringify(asks)),
        'reprise.yaml': 'agents: { c: { kind: claude, command: [node, ./claude.mjs], allow: [Edit] } }\n',
      },
    });
    const { code, stderr } = await project.cli(['run', '--agent', 'c', '--prompt', 'x']);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(project.marks()).toEqual([
      'strict false',
      ...files.map(file => `Edit ${file} ${file === 'a.txt' ? 'allow' : 'deny'}`),
    ]);
  });
});

it('a session after one that planted an MCP server starts none', { timeout: limit }, async () => {
  const project = agentProject({
    files: {
      'claude.mjs': claudeStandIn('[]', "writeFileSync('.mcp.json', '{}');"),
      'reprise.yaml': 'agents: { c: { kind: claude, command: [node, ./claude.mjs], permissions: full } }\n',
    },
  });
  project.write({
    'w.yaml': 'name: w\nsteps: [{ id: a, agent: c, prompt: x, checks: ["false"], on_fail: { rework: 1 } }]\n',
  });
  await project.cli(['run', 'w.yaml']);
  expect(project.marks()).toEqual(['strict false', 'strict true']);
});

describe('permissions', () => {
  it('of a scripted agent apply to what it writes and runs', { timeout: limit }, async () => {
    const steps = [{ write: { path: 'w.txt', content: 'hi' } }, { run: 'touch "$MARKS"' }];
    for (const step of steps) {
      const agent = {
        kind: 'scripted',
        permissions: 'read-only',
        deny: ['Bash(touch *)'],
        script: [step, { say: 'ok' }],
      };
      const project = agentProject({ files: { 'reprise.yaml': JSON.stringify({ agents: { t: agent } }) } });
      const { code, stderr } = await project.cli(['run', '--agent', 't', '--prompt', 'x']);
      expect(code).toBe(3);
      expect(stderr).toContain('PERMISSION_DENIED');
      expect(project.marks()).toEqual([]);
    }
  });

  it('that a program cannot enforce are refused before it starts, wherever they are set', {
    timeout: limit,
  }, async () => {
    const program = { kind: 'command', command: ['sh', '-c', 'echo started >> "$MARKS"'] };
    const project = agentProject({ files: { 'reprise.yaml': JSON.stringify({ agents: { p: program } }) } });
    project.write({
      'step.yaml': 'name: w\nsteps: [{ id: a, agent: p, prompt: x, permissions: read-only }]\n',
      'rules.yaml': 'name: w\nsteps: [{ id: a, agent: p, prompt: x, permissions: { deny: [Bash] } }]\n',
      'free.yaml': 'name: w\nsteps: [{ id: a, agent: p, prompt: x }]\n',
    });
    for (const args of [
      ['run', 'step.yaml'],
      ['run', 'rules.yaml'],
      ['validate', 'step.yaml'],
      ['run', '--agent', 'p', '--prompt', 'x', '--permissions', 'edit'],
    ]) {
      const { code, stderr } = await project.cli(args);
      expect({ code, stderr }).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('cannot be enforced'),
      });
    }
    project.write({ 'reprise.yaml': JSON.stringify({ agents: { p: { ...program, permissions: 'edit' } } }) });
    expect(await project.cli(['run', 'free.yaml'])).toMatchObject({ code: 2 });
    project.write({ 'reprise.yaml': JSON.stringify({ agents: { p: program } }) });
    expect(project.marks()).toEqual([]);
    expect(await project.cli(['run', 'free.yaml'])).toMatchObject({ code: 0 });
    expect((await project.cli(['doctor'])).stdout).toContain('nothing restricts what it does');
  });
});

it.each(['/etc/*', '*/../../*', '{..,x}/*', '{a,/etc/*}', '[.][.]/*'])(
  'a read-only agent cannot search outside of its workspace with %s',
  { timeout: limit },
  async pattern => {
    const agent = {
      kind: 'scripted',
      permissions: 'read-only',
      script: [{ ask: { tool: 'Glob', input: { pattern } } }, { say: 'ALLOWED' }],
    };
    const project = agentProject({ files: { 'reprise.yaml': JSON.stringify({ agents: { g: agent } }) } });
    const { code, stdout } = await project.cli(['run', '--agent', 'g', '--prompt', 'x']);
    expect(stdout).not.toContain('ALLOWED');
    expect(code).toBe(3);
  },
);
