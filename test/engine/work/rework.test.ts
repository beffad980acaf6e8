import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { RepriseError } from '../../../src/core/errors.ts';
import type { JsonObject } from '../../../src/core/json.ts';
import type { AgentOutput } from '../../../src/workflow/model.ts';
import { agentBody, agentOf, command, scripted, workLab } from './support.ts';

/** An agent that counts its sessions in a file and runs a different script in each. */
const inTurn = (...scripts: readonly string[]) =>
  agentOf({
    command: [
      'sh',
      '-c',
      `n=$(cat .git-n 2>/dev/null || echo 0); echo $((n+1)) > .git-n; cat > .prompt-$n\ncase $n in\n${scripts.map((script, n) => `${n}) ${script};;`).join('\n')}\nesac`,
    ],
  });

describe('a check', () => {
  test('fails the step with its command, exit code and log', async () => {
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

  test('is reported to the agent if it fails, and the agent fixes the work', async () => {
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

  test('fails the step if it keeps failing until no rework is left', async () => {
    const lab = await workLab({ agents: [inTurn('true', 'true', 'true')] });
    const unit = lab.unit(agentBody({ rework: 2, work: { checks: [command('false')] } }));
    expect(await unit.work()).toMatchObject({ kind: 'failed', error: { code: 'CHECK_FAILED' } });
    expect(unit.of('session.started')).toHaveLength(3);
  });
});

describe('the output of an agent', () => {
  const schema: JsonObject = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
  const output: AgentOutput = {
    schema,
    parse: value => {
      const n = (value as { n?: unknown } | null)?.n;
      if (typeof n === 'number' && n > 0) return { n };
      throw new RepriseError('OUTPUT_INVALID', 'n must be above 0');
    },
  };

  test('is the output of the step if it is valid', async () => {
    const lab = await workLab({ agents: [scripted([{ result: { output: { n: 1 } } }])] });
    expect(await lab.unit(agentBody({ output })).work()).toEqual({ kind: 'completed', output: { n: 1 } });
  });

  test('may be embedded in text', async () => {
    const lab = await workLab({ agents: [scripted([{ say: 'So:\n```json\n{"n":2}\n```' }])] });
    expect(await lab.unit(agentBody({ output })).work()).toEqual({ kind: 'completed', output: { n: 2 } });
  });

  test.each([
    ['is not JSON', 'echo Hello.', /no structured output/],
    ['does not match the schema', `echo '{"n":"x"}'`, /n: /],
    ['is refused by the step', `echo '{"n":0}'`, /above 0/],
  ])('is OUTPUT_INVALID if it %s', async (_, script, message) => {
    const lab = await workLab({ agents: [inTurn(script)] });
    expect(await lab.unit(agentBody({ output })).work()).toMatchObject({
      kind: 'failed',
      error: { code: 'OUTPUT_INVALID', message: expect.stringMatching(message) },
    });
  });

  test('is reported to the agent if it is invalid', async () => {
    const lab = await workLab({ agents: [inTurn('echo Hello.', `echo '{"n":0}'`, `echo '{"n":3}'`)] });
    const unit = lab.unit(agentBody({ output, rework: 2 }));
    expect(await unit.work()).toEqual({ kind: 'completed', output: { n: 3 } });
    expect(unit.read('.prompt-2')).toContain('n must be above 0');
  });
});

describe('an agent that can resume', () => {
  const program = fileURLToPath(new URL('../../support/claude-agent/program.mjs', import.meta.url));
  const claude = agentOf({ kind: 'claude', command: [process.execPath, program] });

  test('gets its session id before it starts and a failed check in the same session', async () => {
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

test('a later attempt starts from the base again and is told why the last one failed', async () => {
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

describe('a crash after the end of a session', () => {
  test('does not repeat the session: its checks continue from its answer', async () => {
    const lab = await workLab({ agents: [inTurn('echo good > b.txt; echo One.', 'echo Two.')] });
    const unit = lab.unit(agentBody({ work: { checks: [command('grep -q good b.txt')] } }));
    await unit.work({ crashAfter: 'session.ended' });
    expect(await unit.work()).toEqual({ kind: 'completed', output: { text: 'One.' } });
    expect(unit.of('session.started')).toHaveLength(1);
  });

  test('counts the reworks before it', async () => {
    const lab = await workLab({ agents: [inTurn('true', 'true', 'true', 'true')] });
    const unit = lab.unit(agentBody({ rework: 1, work: { checks: [command('false')] } }));
    await unit.work({ crashAfter: 'session.ended' });
    expect(await unit.work()).toMatchObject({ kind: 'failed', error: { code: 'CHECK_FAILED' } });
    expect(unit.of('session.started')).toHaveLength(2);
  });

  test('fails the step with the error of a failed session', async () => {
    const lab = await workLab({ agents: [inTurn('echo Out of luck. >&2; exit 3', 'echo Two.')] });
    const unit = lab.unit(agentBody());
    await unit.work({ crashAfter: 'session.ended' });
    expect(await unit.work()).toMatchObject({ kind: 'failed', error: { code: 'AGENT_FAILED' } });
    expect(unit.of('session.started')).toHaveLength(1);
  });

  test('repeats the session if its folder is gone', async () => {
    const lab = await workLab({ agents: [inTurn('echo good > b.txt; echo One.')] });
    const unit = lab.unit(agentBody({ work: { checks: [command('grep -q good b.txt')] } }));
    await unit.work({ crashAfter: 'session.ended' });
    unit.git('reset', '-q', '--hard', 'main');
    rmSync(unit.folder, { recursive: true });
    expect(await unit.work()).toMatchObject({ kind: 'completed' });
    expect(unit.of('session.started')).toHaveLength(2);
  });
});
