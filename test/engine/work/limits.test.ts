import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { goOnPrompt } from '../../../src/engine/step/agent/conversation.ts';
import { agentBody, agentOf, scripted, workLab } from './support.ts';

const usage = (fields: object) =>
  `console.log(JSON.stringify({ type: 'usage', ...${JSON.stringify(fields)} }));`;
const forever = 'setInterval(() => {}, 1000);';

/** A program with the protocol of Claude Code that keeps its sessions in files and follows instructions from a file. */
const remembering = fileURLToPath(new URL('./fixtures/remembering-agent.mjs', import.meta.url));

describe('a rate limit', () => {
  test('pauses the step until it resets', async () => {
    const resets = new Date(Date.now() + 3_600_000).toISOString();
    const lab = await workLab({
      agents: [scripted([{ limit: { resets_at: resets, reason: 'Come back later.' } }])],
    });
    const unit = lab.unit(agentBody());
    const end = await unit.work();
    expect(end).toMatchObject({ kind: 'paused', reason: 'Come back later.' });
    expect(end.kind === 'paused' && Math.round(end.delayMs / 60_000)).toBe(60);
    expect(unit.of('session.ended')).toMatchObject([{ outcome: 'limit' }]);
    expect(unit.types).not.toContain('workspace.saved');
  });

  test('leads to longer and longer pauses if it has no reset time', async () => {
    const lab = await workLab({ agents: [scripted([{ limit: {} }])] });
    const unit = lab.unit(agentBody());
    const minutes = [];
    for (let time = 0; time < 6; time++) {
      const end = await unit.work();
      minutes.push(end.kind === 'paused' && end.delayMs / 60_000);
    }
    expect(minutes).toEqual([5, 10, 20, 40, 60, 60]);
  });

  test('is followed by a resume of the same session', async () => {
    const lab = await workLab();
    const agent = agentOf({
      kind: 'claude',
      command: [process.execPath, remembering, join(lab.git.folder, 'memory')],
    });
    const unit = await withAgent(lab, agent);
    writeFileSync(join(lab.git.folder, 'next'), 'limit');
    expect(await unit.work()).toMatchObject({ kind: 'paused' });
    writeFileSync(join(lab.git.folder, 'next'), 'tell');
    expect(await unit.work()).toEqual({ kind: 'completed', output: { text: `Fix it. | ${goOnPrompt}` } });
    const [first, second] = unit.of('session.started');
    expect(second).toMatchObject({ number: 1, resumes: true, sessionId: first?.sessionId });
  });
});

describe('a session after a crash', () => {
  test('is resumed with the prompts that it already has', async () => {
    const lab = await workLab();
    const agent = agentOf({
      kind: 'claude',
      command: [process.execPath, remembering, join(lab.git.folder, 'memory')],
    });
    const unit = await withAgent(lab, agent);
    writeFileSync(join(lab.git.folder, 'next'), 'hang');
    const here = lab.seen(each => each.kind === 'agent' && each.event.type === 'text');
    await unit.work({ crashAfter: 'session.started', cancelWhen: here });
    writeFileSync(join(lab.git.folder, 'next'), 'tell');
    expect(await unit.work()).toEqual({ kind: 'completed', output: { text: `Fix it. | ${goOnPrompt}` } });
  });

  test('starts over with the full prompt if the agent does not know it', async () => {
    const lab = await workLab();
    const agent = agentOf({
      kind: 'claude',
      command: [process.execPath, remembering, join(lab.git.folder, 'memory')],
    });
    const unit = await withAgent(lab, agent);
    await unit.work({ crashAfter: 'session.started' });
    writeFileSync(join(lab.git.folder, 'next'), 'tell');
    expect(await unit.work()).toEqual({ kind: 'completed', output: { text: 'Fix it.' } });
    expect(unit.of('session.started').map(({ resumes }) => resumes ?? false)).toEqual([false, true, false]);
    expect(lab.notices).toEqual([expect.stringContaining('could not resume its session')]);
  });

  test('starts over with the full prompt if the agent cannot resume', async () => {
    const lab = await workLab({ agents: [agentOf({ command: ['cat'] })] });
    const unit = lab.unit(agentBody());
    await unit.work({ crashAfter: 'session.started' });
    expect(await unit.work()).toEqual({ kind: 'completed', output: { text: 'Fix it.' } });
  });
});

describe('a spending budget', () => {
  test.each([
    ['cost', { costUsd: 1 }, usage({ costUsd: 1.5, inputTokens: 1 }), /\$1\.50.*\$1\.00 was left/],
    ['tokens', { tokens: 100 }, usage({ inputTokens: 90, outputTokens: 20 }), /110 tokens.*100 were left/],
  ])('stops a session that exceeds it in %s', async (_, left, source, message) => {
    const lab = await workLab();
    const unit = await withAgent(lab, agentOf({ command: lab.program(`${source} ${forever}`) }), left);
    expect(await unit.work()).toMatchObject({
      kind: 'suspended',
      error: { code: 'BUDGET_EXCEEDED', message: expect.stringMatching(message), hint: expect.any(String) },
    });
    expect(unit.of('session.ended')).toMatchObject([{ outcome: 'suspended' }]);
  });

  test('prevents a session if nothing is left', async () => {
    const lab = await workLab();
    const unit = await withAgent(lab, agentOf({ command: ['true'] }), { costUsd: 0 });
    expect(await unit.work()).toMatchObject({ error: { code: 'BUDGET_EXCEEDED' } });
    expect(unit.types).not.toContain('session.started');
  });

  test('that the last message of a session exceeds keeps the answer, which is not paid for again', async () => {
    const lab = await workLab();
    const source = `
      const session_id = process.argv[process.argv.indexOf('--session-id') + 1];
      const usage = { input_tokens: 1, output_tokens: 1 };
      const result = { type: 'result', subtype: 'success', is_error: false, result: 'done', total_cost_usd: 2, usage, session_id };
      for (const line of [{ type: 'system', subtype: 'init', session_id }, result]) console.log(JSON.stringify(line));`;
    const agent = agentOf({ kind: 'claude', command: lab.program(source) });
    const unit = await withAgent(lab, agent, { costUsd: 1 });
    expect(await unit.work()).toMatchObject({ kind: 'suspended', error: { code: 'BUDGET_EXCEEDED' } });
    expect(await unit.work()).toEqual({ kind: 'completed', output: { text: 'done' } });
    expect(unit.of('session.started')).toHaveLength(1);
  });

  test('is shared by the sessions of an attempt', async () => {
    const lab = await workLab();
    const source = `${usage({ costUsd: 0.6, inputTokens: 1 })} console.log('{"type":"result","text":"x"}')`;
    const agent = agentOf({ command: lab.program(source) });
    lab.define(agent);
    const body = agentBody({
      rework: 5,
      work: { checks: [{ text: 'no', command: () => ({ script: 'false', shell: 'sh', env: {} }) }] },
    });
    const unit = lab.unit(body, { left: { costUsd: 1 } });
    expect(await unit.work()).toMatchObject({ error: { code: 'BUDGET_EXCEEDED' } });
    expect(unit.of('session.started')).toHaveLength(2);
  });

  test('cannot be enforced in dollars if the cost is unknown, which is reported once', async () => {
    const lab = await workLab();
    const source = `${usage({ inputTokens: 1000 })} console.log('{"type":"result","text":"x"}')`;
    for (const step of ['a', 'b']) {
      const unit = await withAgent(lab, agentOf({ command: lab.program(source) }), { costUsd: 1 }, step);
      expect(await unit.work()).toMatchObject({ kind: 'completed' });
    }
    expect(lab.notices).toEqual([expect.stringContaining('coder does not report its cost')]);
  });
});

describe('the slots of an agent', () => {
  test('are never exceeded by parallel sessions', async () => {
    const lab = await workLab();
    const log = join(lab.git.folder, 'log');
    const go = join(lab.git.folder, 'go');
    const work = `echo in >> "$LOG"; until [ -f "$GO" ]; do sleep 0.01; done; echo out >> "$LOG"`;
    lab.define(scripted([{ run: work }], { maxConcurrency: 1, env: { LOG: log, GO: go } }));
    const waits = lab.seen(
      each => each.kind === 'notice' && each.message.startsWith('waiting for a free slot'),
    );
    const units = ['a', 'b', 'c'].map(step => lab.unit(agentBody(), { step }).work());
    await waits;
    writeFileSync(go, '');
    expect((await Promise.all(units)).map(({ kind }) => kind)).toEqual([
      'completed',
      'completed',
      'completed',
    ]);
    expect(readFileSync(log, 'utf8')).toBe('in\nout\n'.repeat(3));
  });

  test('are released by cancelled sessions, whether they wait or run', async () => {
    const lab = await workLab();
    const agent = scripted([{ say: 'here' }, { sleep: 60_000 }], { maxConcurrency: 1 });
    lab.define(agent);
    const here = lab.seen(each => each.kind === 'agent' && each.event.type === 'text');
    const waits = lab.seen(each => each.kind === 'notice' && each.message.startsWith('waiting'));
    const both = Promise.all([here, waits]);
    const ends = await Promise.all(
      ['a', 'b'].map(step => lab.unit(agentBody(), { step }).work({ cancelWhen: both })),
    );
    expect(ends.map(({ kind }) => kind)).toEqual(['cancelled', 'cancelled']);
    const quick = scripted([{ say: 'Done.' }], { maxConcurrency: 1 });
    lab.define(quick);
    expect(await lab.unit(agentBody(), { step: 'c' }).work()).toMatchObject({ kind: 'completed' });
  });
});

async function withAgent(
  lab: Awaited<ReturnType<typeof workLab>>,
  agent: ReturnType<typeof agentOf>,
  left = {},
  step = 'fix',
) {
  lab.define(agent);
  return lab.unit(agentBody(), { left, step });
}
