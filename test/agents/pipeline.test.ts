import { describe, expect, test } from 'vitest';
import { installedAgents } from './support/install.ts';
import { agentProject, endsIn, everyAgent, expectCode, of, scriptFor, stepsFor } from './support/project.ts';

const list = `{ type: object, properties: { files: { type: array, items: { type: string } } }, required: [files], additionalProperties: false }`;
const command = 'echo made > made.txt';

describe.skipIf(!installedAgents())('a run with an agent of each kind', () => {
  test('commits their work on separate branches, and prints commands that resume their sessions', async () => {
    const project = await agentProject({
      script: {
        ...scriptFor(everyAgent, agent => [
          { say: 'I write it.', actions: [{ write: { path: `${agent}.txt`, content: 'hello\n' } }] },
          { say: 'Done.' },
        ]),
        more: [{ say: 'Here I am again.' }],
      },
      steps: stepsFor(everyAgent),
    });
    const run = await project.reprise('run', 'flow');
    expectCode(run, 0);
    const history = await project.history();
    expect(of(history, 'session.ended').map(({ data }) => data)).toEqual(
      everyAgent.map(() =>
        expect.objectContaining({
          outcome: 'ok',
          usage: expect.objectContaining({ inputTokens: 200, outputTokens: 20 }),
        }),
      ),
    );
    const runId = history[0]?.runId ?? '';
    for (const agent of everyAgent) {
      const branch = `reprise/flow/${runId}/${agent}`;
      expect(project.git('show', '--stat', '--format=%s', branch)).toContain(`${agent}: Done.`);
      expect(project.git('diff', '--name-only', 'main', branch)).toBe(`${agent}.txt\n`);
    }
    expect(project.git('status', '--porcelain')).toBe('');
    expect(project.model.outside).toEqual([]);
    expect(project.processes()).toEqual([]);

    const [, into = ''] = /^ *(cd \S+ && claude --resume \S+)$/m.exec(run.stderr) ?? [];
    expect(into).toContain(`.reprise/workspaces/flow/${runId}/claude`);
    expect(await project.shell(`${into} -p "And [[more]]." < /dev/null`)).toBe('Here I am again.\n');
    expect(project.model.requestsFor('more')[0]?.told).toContain('Please [[do-claude]].');
  });

  test('accepts structured output that matches the schema, and tells the next attempt why the last one failed', async () => {
    const project = await agentProject({
      script: scriptFor(everyAgent, () => ({ told, index }) => {
        if (!told.includes('The last attempt failed')) return { say: 'There are two.' };
        return index === 0 ? { actions: [{ answer: { files: ['a', 'b'] } }] } : { say: 'Ok.' };
      }),
      steps: stepsFor(everyAgent, `output: ${list}, retry: { attempts: 2, backoff: 10ms }`),
    });
    expectCode(await project.reprise('run', 'flow'), 0);
    const history = await project.history();
    expect(of(history, 'step.retrying').map(({ data }) => data.error.code)).toEqual(
      everyAgent.map(() => 'OUTPUT_INVALID'),
    );
    for (const agent of everyAgent) {
      expect(endsIn(history)[agent]).toMatchObject({ output: { files: ['a', 'b'] } });
      const [first, ...later] = project.model.requestsFor(`do-${agent}`);
      expect(first?.told).not.toContain('The last attempt failed');
      expect(later.at(-1)?.told).toContain('OUTPUT_INVALID');
      expect(later.at(-1)?.told).toContain('no structured output');
    }
  });

  test('fails with OUTPUT_INVALID if the output never matches, and with AGENT_UNAVAILABLE if the server fails', async () => {
    const wrong = { actions: [{ answer: { files: 'none' } }] };
    const project = await agentProject({
      script: {
        ...scriptFor(everyAgent, () => Array.from({ length: 10 }, () => wrong)),
        broken: [{ fail: { status: 500, message: 'It broke.' } }],
      },
      steps:
        stepsFor(everyAgent, `output: ${list}`) +
        everyAgent
          .map(agent => `  - { id: ${agent}-500, agent: ${agent}, prompt: "Be [[broken]]." }\n`)
          .join(''),
      top: 'on_failure: continue',
    });
    expectCode(await project.reprise('run', 'flow'), 1);
    const ends = endsIn(await project.history());
    for (const agent of everyAgent) {
      expect(ends[agent]).toMatchObject({ error: { code: 'OUTPUT_INVALID' } });
      expect(ends[`${agent}-500`]).toMatchObject({
        error: { code: 'AGENT_UNAVAILABLE', hint: expect.stringContaining('add `retry`') },
      });
    }
    expect(project.processes()).toEqual([]);
  });
});

describe.skipIf(!installedAgents())('a denied action', () => {
  const runs = () => [
    { say: 'I run it.', actions: [{ run: command, unconfined: true }] },
    { say: 'That was it.' },
  ];

  test('is in the summary with the line to add, and is allowed with that line', async () => {
    const names = ['claude', 'server', 'acp'] as const;
    const lines = ['["Bash(echo made > made.txt)"]', '["Bash(npm test)", "Bash(echo made > made.txt)"]'];
    const project = await agentProject({ script: scriptFor(names, runs), steps: stepsFor(names) });
    const denied = await project.reprise('run', 'flow');
    expectCode(denied, 0);
    for (const agent of names) {
      const line = lines[agent === 'server' ? 1 : 0];
      expect(denied.stderr).toContain(`Bash  to allow it, add to the agent ${agent}: allow: ${line}\n`);
    }
    expect(project.git('log', '--all', '--format=%s')).toBe('Begin\n');

    const allowed = await agentProject({
      script: scriptFor(names, runs),
      steps: stepsFor(names, `permissions: { allow: ${lines[1]} }`),
    });
    const run = await allowed.reprise('run', 'flow');
    expectCode(run, 0);
    expect(run.stderr).not.toContain('denied');
    expect(of(await allowed.history(), 'workspace.saved').map(({ data }) => data.files)).toEqual([1, 1, 1]);
  });

  test('is the reason why a step without output failed, with exit code 3', async () => {
    const project = await agentProject({
      script: scriptFor(['claude'], () => [...runs(), { say: 'I could not.' }]),
      steps: stepsFor(['claude'], `output: ${list}`),
    });
    const run = await project.reprise('run', 'flow');
    expectCode(run, 3);
    expect(run.stderr).toContain('PERMISSION_DENIED');
    expect(run.stderr).toContain('allow: ["Bash(echo made > made.txt)"]');
  });
});
