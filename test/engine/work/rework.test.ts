import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { RepriseError } from '../../../src/core/errors.ts';
import type { JsonObject } from '../../../src/core/json.ts';
import type { AgentOutput } from '../../../src/workflow/model.ts';
import { agentBody, agentOf, command, scripted, workLab } from './support.ts';

/** Counts its sessions in a file, and does something else in each. */
const inTurn = (...scripts: readonly string[]) =>
  agentOf({
    command: [
      'sh',
      '-c',
      `n=$(cat .git-n 2>/dev/null || echo 0); echo $((n+1)) > .git-n; cat > .prompt-$n\ncase $n in\n${scripts.map((script, n) => `${n}) ${script};;`).join('\n')}\nesac`,
    ],
  });

describe('a check', () => {
  test('that fails, fails the step: its command, exit code and log are named', async () => {
    const lab = await workLab({
      agents: [scripted([{ write: { path: 'b.txt', content: 'x' } }, { say: 'Done.' }])],
    });
    const unit = lab.unit(
      agentBody({ work: { checks: [command('true'), command('echo no good; exit 3')] } }),
    );
    expect(await unit.work()).toMatchObject({
      kind: 'failed',
      error: {
        code: 'CHECK_FAILED',
        message: 'the check `echo no good; exit 3` exited with code 3\nno good',
        hint: expect.stringMatching(/fix\.1\.check-2\.log/),
        exitCode: 3,
      },
    });
    expect(unit.git('show', 'HEAD:b.txt')).toBe('x');
  });

  test('that fails is told to the agent, which mends it', async () => {
    const lab = await workLab({
      agents: [inTurn('echo bad > b.txt; echo One.', 'echo good > b.txt; echo Two.')],
    });
    const unit = lab.unit(
      agentBody({ rework: 1, work: { checks: [command('cat b.txt; grep -q good b.txt')] } }),
    );
    expect(await unit.work()).toEqual({ kind: 'completed', output: { text: 'Two.' } });
    expect(unit.of('session.started').map(({ number }) => number)).toEqual([0, 1]);
    const [first, second] = [unit.read('.prompt-0'), unit.read('.prompt-1')];
    expect(first).toBe('Fix it.');
    expect(second?.startsWith('Fix it.\n\n## What has happened since')).toBe(true);
    expect(second).toContain('exited with code 1');
    expect(second).toContain('cat b.txt; grep -q good b.txt');
    expect(second).toContain('```\nbad\n```');
  });

  test('that goes on failing fails the step when nothing of rework is left', async () => {
    const lab = await workLab({ agents: [inTurn('true', 'true', 'true')] });
    const unit = lab.unit(agentBody({ rework: 2, work: { checks: [command('false')] } }));
    expect(await unit.work()).toMatchObject({ kind: 'failed', error: { code: 'CHECK_FAILED' } });
    expect(unit.of('session.started')).toHaveLength(3);
  });
});

describe('the output', () => {
  const schema: JsonObject = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
  const output: AgentOutput = {
    schema,
    parse: value => {
      const n = (value as { n?: unknown } | null)?.n;
      if (typeof n === 'number' && n > 0) return { n };
      throw new RepriseError('OUTPUT_INVALID', 'n must be above 0');
    },
  };

  test('that fits is the output of the step', async () => {
    const lab = await workLab({ agents: [scripted([{ result: { output: { n: 1 } } }])] });
    expect(await lab.unit(agentBody({ output })).work()).toEqual({ kind: 'completed', output: { n: 1 } });
  });

  test('may stand in the text', async () => {
    const lab = await workLab({ agents: [scripted([{ say: 'So:\n```json\n{"n":2}\n```' }])] });
    expect(await lab.unit(agentBody({ output })).work()).toEqual({ kind: 'completed', output: { n: 2 } });
  });

  test.each([
    ['that is no data', 'echo Hello.', /without data/],
    ['that does not fit the schema', `echo '{"n":"x"}'`, /n: /],
    ['that the step refuses', `echo '{"n":0}'`, /above 0/],
  ])('%s is OUTPUT_INVALID', async (_, script, message) => {
    const lab = await workLab({ agents: [inTurn(script)] });
    expect(await lab.unit(agentBody({ output })).work()).toMatchObject({
      kind: 'failed',
      error: { code: 'OUTPUT_INVALID', message: expect.stringMatching(message) },
    });
  });

  test('that cannot be used is told to the agent', async () => {
    const lab = await workLab({ agents: [inTurn('echo Hello.', `echo '{"n":0}'`, `echo '{"n":3}'`)] });
    const unit = lab.unit(agentBody({ output, rework: 2 }));
    expect(await unit.work()).toEqual({ kind: 'completed', output: { n: 3 } });
    expect(unit.read('.prompt-2')).toContain('n must be above 0');
  });
});

describe('an agent that remembers', () => {
  const program = fileURLToPath(new URL('../../support/claude-agent/program.mjs', import.meta.url));
  const claude = agentOf({ kind: 'claude', command: [process.execPath, program] });

  test('has an id that we chose before it began, and is told the news in the same session', async () => {
    const lab = await workLab({ agents: [claude] });
    const unit = lab.unit(
      agentBody({ rework: 1, work: { checks: [command('test -f .second || { touch .second; false; }')] } }),
    );
    expect(await unit.work()).toMatchObject({ kind: 'completed' });
    const [first, second] = unit.of('session.started');
    expect(first).toEqual({
      agent: 'coder',
      kind: 'claude',
      number: 0,
      sessionId: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f-]{27}$/),
    });
    expect(second).toEqual({
      agent: 'coder',
      kind: 'claude',
      number: 1,
      sessionId: first?.sessionId,
      resumes: true,
    });
    expect(unit.of('session.ended')).toMatchObject([
      { outcome: 'ok', usage: { costUsd: 0.5 } },
      { outcome: 'ok' },
    ]);
  });
});

test('a later attempt begins again from the base, and knows why the last one failed', async () => {
  const lab = await workLab({
    agents: [inTurn('echo x > b.txt; echo broken >&2; exit 1', 'cat .git-n b.txt 2>&1')],
  });
  const unit = lab.unit(agentBody());
  const first = await unit.work();
  expect(first).toMatchObject({ kind: 'failed' });
  const lost = unit.of('workspace.saved')[0]?.commit ?? '';
  unit.retry(first);
  expect(await unit.work()).toMatchObject({ kind: 'failed' });
  expect(unit.read('b.txt')).toBe('x\n');
  expect(unit.read('.prompt-0')).toMatch(/^Fix it\.\n\n## The last attempt failed\n.*AGENT_FAILED.*broken/s);
  expect(unit.of('workspace.created')).toHaveLength(2);
  expect(unit.git('for-each-ref', '--contains', lost, '--format=%(refname)')).toContain('parked');
});
