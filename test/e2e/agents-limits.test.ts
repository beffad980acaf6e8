import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { agentProject } from './agent-project.ts';
import { parseLines, until } from './run-inline.ts';

const usage = (cost: string) => `'{"type":"usage","inputTokens":1000,"outputTokens":500,"costUsd":${cost}}'`;
const spender = (cost: string, then = '') => `
echo try >> "$MARKS"
echo half > half.txt
printf '%s\\n' ${usage(cost)}
${then}
echo '{"type":"result","text":"ok"}'
`;

describe('the budget of a step', () => {
  it.each([
    ['cost, during the session', spender('0.5', 'sleep 1000'), 'budget: { cost_usd: 0.4 }', 'cost $0.50'],
    ['cost, at the end of the session', spender('0.5'), 'budget: { cost_usd: 0.4 }', 'cost $0.50'],
    [
      'tokens, during the session',
      spender('null', 'sleep 1000'),
      'budget: { tokens: 1200 }',
      'used 1500 tokens',
    ],
  ])('suspends the run without a retry and keeps its work: %s', async (_, script, budget, says) => {
    const project = agentProject({
      agents: { spender: script },
      files: { 'w.yaml': `steps:\n  - { id: s, agent: spender, prompt: x, retry: 3, ${budget} }\n` },
    });
    const outcome = await project.outcome(['run', 'w.yaml']);
    expect(outcome).toMatchObject({ code: 4, error: { code: 'BUDGET_EXCEEDED' } });
    expect(outcome.error?.message).toContain(says);
    expect(project.marks()).toEqual(['try']);
    expect(
      readFileSync(join(project.root, '.reprise/workspaces/w', `${outcome.run}`, 's/half.txt'), 'utf8'),
    ).toBe('half\n');
    expect(project.leftRunning()).toEqual([]);
  });

  it.each([
    ['cost_usd: 0.8', '0.5', 'the run cost $1.00, more than its limit of $0.80'],
    ['tokens: 2000', 'null', 'the run used 3000 tokens, more than its limit of 2000'],
  ])('is also limited by the budget of the run: { %s }', async (budget, cost, message) => {
    const project = agentProject({
      agents: { spender: spender(cost) },
      files: {
        'w.yaml': `
runtime: { budget: { ${budget} } }
steps:
  - { id: s, agent: spender, prompt: x, retry: 3 }
  - { id: t, needs: [s], agent: spender, prompt: x, retry: 3 }
  - { id: u, needs: [t], agent: spender, prompt: x }
`,
      },
    });
    const outcome = await project.outcome(['run', 'w.yaml']);
    expect(outcome).toMatchObject({ code: 4, error: { code: 'BUDGET_EXCEEDED', message } });
    expect(project.marks()).toEqual(['try', 'try']);
  });

  it('is not enforced if the cost is unknown, and a warning says so', async () => {
    const project = agentProject({
      agents: { spender: spender('null') },
      files: { 'w.yaml': 'steps:\n  - { id: s, agent: spender, prompt: x, budget: { cost_usd: 0.4 } }\n' },
    });
    const { code, stderr } = await project.cli(['run', 'w.yaml']);
    expect(code).toBe(0);
    expect(stderr).toContain('cost unknown');
    expect(stderr).toMatch(/spender.*(price|cost)/);
    expect(parseLines((await project.cli(['list', '--json'])).stdout)).toMatchObject([{ cost: null }]);
  });

  it('applies the `price` of the agent to its tokens', async () => {
    const project = agentProject({
      config: `  priced:
    kind: command
    command: [sh, spender.sh]
    price: { input_per_mtok: 1, output_per_mtok: 10 }`,
      files: {
        'spender.sh': spender('null'),
        'w.yaml': 'steps:\n  - { id: s, agent: priced, prompt: x, budget: { cost_usd: 0.001 } }\n',
      },
    });
    const outcome = await project.outcome(['run', 'w.yaml']);
    expect(outcome).toMatchObject({ code: 4, error: { code: 'BUDGET_EXCEEDED' } });
    expect(parseLines((await project.cli(['list', '--json'])).stdout)).toMatchObject([{ cost: 0.006 }]);
  });
});

/** Speaks the protocol of Claude Code, and hits a rate limit in its first session, which resets after `seconds`. */
const limited = (seconds: number) => `
import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
const argument = name => process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : undefined;
const resumed = argument('--resume');
const session_id = argument('--session-id') ?? resumed;
appendFileSync(process.env.MARKS, (resumed ? 'resumed ' : 'started ') + session_id + '\\n');
const print = message => process.stdout.write(JSON.stringify({ ...message, session_id }) + '\\n');
const result = fields => print({ type: 'result', subtype: 'success', usage: { input_tokens: 1, output_tokens: 1 }, ...fields });
createInterface({ input: process.stdin })
  .on('line', line => {
    const { type, request_id } = JSON.parse(line);
    if (type === 'control_request')
      return print({ type: 'control_response', response: { subtype: 'success', request_id, response: {} } });
    if (type !== 'user') return;
    print({ type: 'system', subtype: 'init', model: 'none', cwd: process.cwd() });
    if (resumed) return result({ is_error: false, result: existsSync('half.txt') ? 'continued' : 'started over' });
    writeFileSync('half.txt', 'half');
    const resetsAt = Math.ceil(Date.now() / 1000) + ${seconds};
    print({ type: 'rate_limit_event', rate_limit_info: { status: 'rejected', resetsAt } });
    result({ is_error: true, api_error_status: 429, result: 'You have hit your limit' });
  })
  .on('close', () => process.exit(0));
`;

describe('an agent that hits a rate limit', () => {
  const limitedProject = (seconds: number) =>
    agentProject({
      config: '  limited: { kind: claude, command: [node, limited.mjs] }',
      files: { 'limited.mjs': limited(seconds) },
    });
  const args = ['run', '--agent', 'limited', '--prompt', 'x'];
  const expectOneSession = (marks: readonly string[]) => {
    const [, id] = marks[0]?.split(' ') ?? [];
    expect(marks).toEqual([`started ${id}`, `resumed ${id}`]);
  };

  it('pauses until the limit resets, then resumes the same session', async () => {
    const project = limitedProject(1);
    const { code, output, events } = await project.outcome(args);
    expect({ code, output }).toEqual({ code: 0, output: { work: { text: 'continued' } } });
    expect(events.map(({ type }) => type)).toContain('step.paused');
    expectOneSession(project.marks());
  });

  it('resumes the same session even if Reprise was killed during the pause', async () => {
    const project = limitedProject(4);
    const run = project.begin([...args, '--json']);
    await until(() => run.stdout.includes('step.paused'));
    run.kill('SIGKILL');
    await run.ended;
    expect(await project.outcome(['resume'])).toMatchObject({
      code: 0,
      output: { work: { text: 'continued' } },
    });
    expectOneSession(project.marks());
  });
});

describe('permissions', () => {
  const program = resolve('test/support/claude-agent/program.mjs');
  const asking = () =>
    agentProject({
      config: `
  asks: { kind: claude, command: [node, ${program}] }
  allowed: { kind: claude, command: [node, ${program}], allow: ["Bash(echo made > made.txt)"] }
`,
    });
  const line = 'allow: ["Bash(echo made > made.txt)"]';
  const run = (...args: readonly string[]) => ['run', '--agent', ...args, '--prompt', '[[bash]]'];

  it.each([[['asks']], [['asks', '--permissions', 'read-only']], [['asks', '--permissions', 'edit']]])(
    'deny a command with %j and show the line that would allow it',
    async args => {
      const { code, stderr, stdout } = await asking().cli(run(...args));
      expect({ code, stdout }).toEqual({ code: 0, stdout: '{"work":{"text":"Not made."}}\n' });
      expect(stderr).toContain(`to allow it, add to the agent asks: ${line}`);
    },
  );

  it.each([[['allowed']], [['asks', '--permissions', 'full']]])('allow a command with %j', async args => {
    const { code, stdout, stderr } = await asking().cli(run(...args));
    expect({ code, stdout }).toEqual({ code: 0, stdout: '{"work":{"text":"Made."}}\n' });
    expect(stderr).not.toContain('denied');
  });

  it('exit with 3 if a denied command kept the agent from passing its checks', async () => {
    const outcome = await asking().outcome([...run('asks'), '--check', 'test -f made.txt']);
    expect(outcome).toMatchObject({ code: 3, error: { code: 'PERMISSION_DENIED' } });
    expect(outcome.error?.message).toContain('test -f made.txt');
    expect(outcome.error?.hint).toContain(line);
  });
});
