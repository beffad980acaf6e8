import { describe, expect, test } from 'vitest';
import { until } from '../e2e/run-inline.ts';
import { deferred } from '../support/engine.ts';
import { installedAgents } from './support/install.ts';
import { agentProject, costOfAnAnswer, expectCode, of, sessionsIn } from './support/project.ts';

const write = (path: string) => ({ say: 'I write it.', actions: [{ write: { path, content: 'x\n' } }] });
const workerIn = (told: string): number => Number(/\/worker_(\d)/.exec(told)?.[1]);

describe.skipIf(!installedAgents())('copies of a step with real agents', () => {
  test('each have a worktree, a session and a commit, and a judge chooses one of them', async () => {
    const project = await agentProject({
      script: {
        fix: ({ told, index }) => (index === 0 ? write(`${workerIn(told)}.txt`) : { say: 'Fixed.' }),
        pick: ({ told }) =>
          told.includes('cannot be used')
            ? { actions: [{ answer: { winner: 2, reason: 'It is the last one.' } }] }
            : { say: 'I like them all.' },
      },
      steps: `
  - id: fix
    agent: claude
    prompt: "Please [[fix]]."
    concurrency: 3
    select: { judge: { agent: claude, prompt: "Do [[pick]]." } }
`,
    });
    const run = await project.reprise('run', 'flow');
    expectCode(run, 0);
    const history = await project.history();
    const runId = history[0]?.runId ?? '';
    expect(of(history, 'selection.made')).toMatchObject([
      { data: { winner: 2, by: 'judge', reason: 'It is the last one.' } },
    ]);
    expect(run.stderr).toContain('copy 2 was selected');
    const [judging] = project.model.requestsFor('pick');
    for (const worker of [0, 1, 2]) {
      expect(judging?.told).toContain(`+++ b/${worker}.txt`);
      const branch = `reprise/flow/${runId}/fix/worker_${worker}`;
      expect(project.git('diff', '--name-only', 'main', branch)).toBe(`${worker}.txt\n`);
    }
    const sessions = sessionsIn(history);
    expect(new Set(sessions.map(({ sessionId }) => sessionId)).size).toBe(4);
    // The judge was told that its first answer is invalid. Its cost is counted once.
    const judged = sessions.filter(({ worker }) => worker === undefined);
    expect(judged.map(({ resumes }) => resumes)).toEqual([undefined, true]);
    const costs = of(history, 'session.ended').map(({ data }) => data.usage.costUsd ?? 0);
    const answers = project.model.requests.filter(({ word }) => word !== undefined).length;
    expect(costs.reduce((sum, cost) => sum + cost, 0)).toBeCloseTo(answers * costOfAnAnswer, 6);
    expect(project.git('worktree', 'list', '--porcelain').match(/^worktree .*worker_\d$/gm)).toHaveLength(3);
  });

  test('are not repeated after a kill of the CLI if they had finished; the others resume', async () => {
    const { promise: released, resolve: release } = deferred();
    const project = await agentProject({
      script: {
        fix: ({ told, index }) => {
          const worker = workerIn(told);
          if (index === 0) return write(`${worker}.txt`);
          return worker === 0 ? { say: 'Fixed.' } : { say: 'Fixed as well.', after: released };
        },
      },
      steps: '  - { id: fix, agent: claude, prompt: "Please [[fix]].", concurrency: 2 }\n',
    });
    const run = project.start('run', 'flow');
    await until(() => /fix:0\s+ok /.test(run.stderr));
    await project.model.asked('fix', 4);
    run.kill('SIGKILL');
    await run.ended;
    release();
    expectCode(await project.reprise('resume'), 0);
    expect(project.processes()).toEqual([]);
    const history = await project.history();
    const sessions = sessionsIn(history);
    expect(sessions.filter(({ worker }) => worker === 0)).toHaveLength(1);
    const [first, second, ...more] = sessions.filter(({ worker }) => worker === 1);
    expect(second).toMatchObject({ sessionId: first?.sessionId, resumes: true });
    expect(more).toEqual([]);
    const byWorker = project.model.requestsFor('fix').map(({ told }) => workerIn(told));
    expect(byWorker.filter(worker => worker === 0)).toHaveLength(2);
    const used = of(history, 'session.ended').map(({ worker, data }) => [worker, data.usage.inputTokens]);
    // The usage of the killed process is unknown.
    expect(used).toEqual([
      [0, 200],
      [1, 100],
    ]);
    expect(of(history, 'workspace.saved').map(({ worker }) => worker)).toEqual([0, 1]);
  });

  test('start Codex in parallel, even if it was never started before', async () => {
    const project = await agentProject({
      isFirstStart: true,
      script: {
        fix: ({ told, index }) => (index === 0 ? write(`${workerIn(told)}.txt`) : { say: 'Fixed.' }),
      },
      steps: '  - { id: fix, agent: codex, prompt: "Please [[fix]].", concurrency: 4 }\n',
    });
    const run = await project.reprise('run', 'flow');
    expectCode(run, 0);
    expect(of(await project.history(), 'workspace.saved')).toHaveLength(4);
  });

  test('take turns if `max_concurrency` is 1, even across two runs', async () => {
    const { promise: released, resolve: release } = deferred();
    const project = await agentProject({
      agents: '  single: { kind: claude, max_concurrency: 1 }\n',
      script: {
        one: [write('one.txt'), { say: 'One.', after: released }],
        two: [write('two.txt'), { say: 'Two.' }],
      },
      steps: '  - { id: fix, agent: single, prompt: "Please [[${{ inputs.word }}]]." }\n',
      top: 'inputs: { word: { type: string, required: true } }',
    });
    const first = project.start('run', 'flow', '--input', 'word=one');
    await project.model.asked('one', 2);
    const second = project.start('run', 'flow', '--input', 'word=two');
    await until(() => second.stderr.includes('waiting for a free slot of agent single'));
    expect(project.model.requestsFor('two')).toEqual([]);
    release();
    for (const run of [first, second]) expectCode(await run.ended, 0);
    const words = project.model.requests.flatMap(({ word }) => word ?? []);
    expect(words).toEqual(['one', 'one', 'two', 'two']);
  });
});
