import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { HistoryEvent } from '../../src/core/events.ts';
import { isSameProcess } from '../../src/process/table.ts';
import { until } from '../e2e/run-inline.ts';
import { installedAgents } from './support/install.ts';
import {
  type AgentName,
  type AgentProject,
  agentProject,
  costOfAnAnswer,
  endsIn,
  everyAgent,
  expectCode,
  of,
  scriptFor,
  sessionsIn,
  stepsFor,
} from './support/project.ts';

/** Starts two processes under the shell of an agent's tool, which Codex runs in its sandbox. */
const endless = 'tail -f /dev/null & echo started > started.txt; tail -f /dev/null';
const mayRunIt = `permissions: { allow: ["Bash(${endless})"] }`;
const endlessSteps = stepsFor(['claude', 'acp', 'server'], mayRunIt) + stepsFor(['codex']);
/** Runs until the file `go.txt` appears. */
const short = 'echo started > started.txt; until test -f go.txt; do sleep 0.1; done';
const shortSteps =
  stepsFor(['claude', 'acp', 'server'], `permissions: { allow: ["Bash(${short})"] }`) + stepsFor(['codex']);
const limit = { status: 429, message: 'Too many requests. Try again in 1 second.', resetsInS: 1 };
const write = (path: string) => ({ say: 'I write it.', actions: [{ write: { path, content: 'x\n' } }] });

const usageIn = (history: readonly HistoryEvent[], agent: AgentName) =>
  of(history, 'session.ended').flatMap(({ step, data }) => (step === agent ? data.usage : []));

describe.skipIf(!installedAgents())('the session of a step', () => {
  test('continues after a limit and after a failed check, without counting usage twice', async () => {
    const project = await agentProject({
      script: scriptFor(everyAgent, agent => ({ told, index }) => {
        if (told.includes('does not pass')) return project.once(agent, write('right.txt'));
        if (told.includes('You were interrupted')) return { say: 'All is well.' };
        return index === 0 ? write('wrong.txt') : { fail: limit };
      }),
      steps: stepsFor(everyAgent, 'checks: ["test -f right.txt"], on_fail: rework'),
    });
    expectCode(await project.reprise('run', 'flow'), 0);
    const history = await project.history();
    expect(of(history, 'step.paused').map(({ data }) => data.delayMs < 5000)).toEqual(
      everyAgent.map(() => true),
    );
    for (const agent of everyAgent) {
      const sessions = sessionsIn(history).filter(({ step }) => step === agent);
      expect(new Set(sessions.map(({ sessionId }) => sessionId)).size).toBe(1);
      expect(sessions.map(({ resumes }) => resumes)).toEqual([undefined, true, true]);
      const used = usageIn(history, agent);
      const tokens = used.reduce((sum, { inputTokens }) => sum + inputTokens, 0);
      // For a failed turn, the ACP server for Claude Code reports only the size of the context, which includes the answer.
      expect(tokens).toBe(agent === 'acp' ? 410 : 400);
      const cost = used.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0);
      if (agent === 'claude') expect(cost).toBeCloseTo(4 * costOfAnAnswer, 6);
      // It reports only the total cost, and loses part of it if another process saves the shared settings concurrently.
      if (agent === 'acp') expect(cost).toBeLessThan(4.1 * costOfAnAnswer);
    }
  });

  test('is stopped by a timeout and by a stall timeout', async () => {
    const quiet = everyAgent.map(
      agent =>
        `  - { id: ${agent}-quiet, agent: ${agent}, prompt: "Be [[quiet]].", timeout: { stall: 3s } }\n`,
    );
    const project = await agentProject({
      script: {
        ...scriptFor(everyAgent, () => [{ say: 'Wait', hangs: true }]),
        quiet: [{ say: 'Wait', hangs: true }],
      },
      steps: stepsFor(everyAgent, 'timeout: 5s') + quiet.join(''),
      top: 'on_failure: continue',
    });
    const run = await project.reprise('run', 'flow');
    expectCode(run, 1);
    expect(project.processes()).toEqual([]);
    const ends = endsIn(await project.history());
    for (const agent of everyAgent) {
      expect(ends[agent]).toMatchObject({ error: { code: 'TIMEOUT' } });
      expect(ends[`${agent}-quiet`]).toMatchObject({ error: { code: 'AGENT_STALLED' } });
    }
  });

  /** Writes a file, runs a command and finishes. An agent whose command was cut off finishes too. */
  const threeRequests = (run: string) =>
    scriptFor(everyAgent, () => ({ index }) => {
      if (index === 0) return write('first.txt');
      return index === 1 ? { say: 'I wait.', actions: [{ run }] } : { say: 'All is well.' };
    });

  const expectContinued = async (project: AgentProject) => {
    const history = await project.history();
    expect(history.at(-1)).toMatchObject({ type: 'run.completed' });
    for (const agent of everyAgent) {
      const sessions = sessionsIn(history).filter(({ step }) => step === agent);
      expect(sessions.map(({ resumes }) => resumes)).toEqual([undefined, true]);
      expect(new Set(sessions.map(({ sessionId }) => sessionId)).size).toBe(1);
      const asked = project.model.requestsFor(`do-${agent}`).map(({ index }) => index);
      expect(asked, agent).toEqual([...new Set(asked)]);
      expect(asked.slice(0, 2), agent).toEqual([0, 1]);
    }
  };

  test.each([
    ['SIGINT', 130, 'person'],
    ['SIGTERM', 143, 'signal'],
    ['SIGHUP', 129, 'signal'],
  ] as const)('is suspended by %s and continues without repeating a request', async (signal, code, by) => {
    const project = await agentProject({ script: threeRequests(short), steps: shortSteps });
    const run = project.start('run', 'flow');
    await until(() => project.inWorkspaces('started.txt').length === everyAgent.length);
    run.kill(signal);
    await until(() => /stopping \d+ sessions|stopping a session/.test(run.stderr));
    for (const file of project.inWorkspaces('started.txt'))
      writeFileSync(join(project.root, '.reprise', dirname(file), 'go.txt'), '');
    expectCode(await run.ended, code);
    expect(project.processes()).toEqual([]);
    const history = await project.history();
    expect(of(history, 'run.suspended').map(({ data }) => data.by)).toEqual([by]);
    expect(of(history, 'session.ended').map(({ data }) => data.outcome)).toEqual(
      everyAgent.map(() => 'suspended'),
    );
    expectCode(await project.reprise('resume'), 0);
    await expectContinued(project);
    // Claude Code stopped after its command, so the model sees the true result of it.
    const [, , last] = project.model.requestsFor('do-claude');
    expect(last?.conversation.turns.map(({ text }) => text).join('\n')).not.toMatch(
      /interrupted by user|STOP/,
    );
  });

  test('is stopped at once by a second Ctrl-C, with all processes that it started', async () => {
    const project = await agentProject({ script: threeRequests(endless), steps: endlessSteps });
    const run = project.start('run', 'flow');
    await until(() => project.inWorkspaces('started.txt').length === everyAgent.length);
    expect(project.processes().length).toBeGreaterThan(3 * everyAgent.length);
    run.kill('SIGINT');
    await until(() => run.stderr.includes('Ctrl-C stops at once'));
    run.kill('SIGINT');
    expectCode(await run.ended, 130);
    expect(project.processes()).toEqual([]);
    expectCode(await project.reprise('resume'), 0);
    await expectContinued(project);
  });

  test('resumes after a kill of the CLI, once all orphaned processes are stopped', async () => {
    let left: readonly { readonly pid: number; readonly processStart: string }[] = [];
    const stillThere: unknown[] = [];
    const project = await agentProject({
      script: scriptFor(everyAgent, agent => ({ told, index }) => {
        if (told.includes('You were interrupted')) {
          stillThere.push(...left.filter(isSameProcess));
          return project.once(agent, write('done.txt'));
        }
        return index === 0 ? { say: 'I wait.', actions: [{ run: endless }] } : { say: 'Never.' };
      }),
      steps: endlessSteps,
    });
    const run = project.start('run', 'flow');
    await until(() => project.inWorkspaces('started.txt').length === everyAgent.length);
    run.kill('SIGKILL');
    await run.ended;
    left = project.processes();
    expect(left.length).toBeGreaterThan(2 * everyAgent.length);
    const resumed = await project.reprise('resume');
    const history = await project.history();
    expectCode(resumed, 0);
    expect(stillThere).toEqual([]);
    expect(project.processes()).toEqual([]);
    for (const agent of everyAgent) {
      const [first, second, ...more] = sessionsIn(history).filter(({ step }) => step === agent);
      expect(second).toMatchObject({ sessionId: first?.sessionId, resumes: true });
      expect(more).toEqual([]);
      // The app server also reports what the killed process had used.
      expect(usageIn(history, agent)).toMatchObject([{ inputTokens: agent === 'server' ? 300 : 200 }]);
    }
  });

  // The kill may come after the first answer, depending on the timing of four programs. Then the test is retried.
  test('restarts if the CLI was killed before the first output of the agent', { retry: 3 }, async () => {
    const project = await agentProject({
      script: scriptFor(
        everyAgent,
        agent =>
          ({ index }) =>
            index === 0 ? write(`${agent}.txt`) : { say: 'Done.' },
      ),
      steps: stepsFor(everyAgent),
    });
    const run = project.start('run', 'flow');
    await until(() => everyAgent.every(agent => new RegExp(`agent ${agent} .*started`).test(run.stderr)));
    run.kill('SIGKILL');
    await run.ended;
    expectCode(await project.reprise('resume'), 0);
    const history = await project.history();
    for (const agent of everyAgent)
      expect(endsIn(history)[agent]).toMatchObject({ output: { text: 'Done.' } });
    expect(of(history, 'workspace.saved').map(({ data }) => data.files)).toEqual([1, 1, 1, 1]);
    expect(project.processes()).toEqual([]);
  });
});
