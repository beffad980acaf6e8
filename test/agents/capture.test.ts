import { describe, expect, test } from 'vitest';
import { playElsewhere } from '../e2e/capture-project.ts';
import { installedAgents } from './support/install.ts';
import { agentProject, everyAgent, expectCode, scriptFor, stepsFor } from './support/project.ts';

describe.skipIf(!installedAgents())('a captured run of real agents', () => {
  test('replays in a fresh clone without any agent or model', async () => {
    const project = await agentProject({
      script: {
        'do-claude': [
          { say: 'I write it.', actions: [{ write: { path: 'claude.txt', content: 'hello\n' } }] },
          { say: 'Done.' },
        ],
      },
      steps: `${stepsFor(['claude'], "checks: ['grep -q hello claude.txt']")}  - { id: land, needs: [claude], land: main, from: claude }\n`,
    });
    expectCode(await project.reprise('run', 'flow'), 0);
    const [started] = await project.history();
    const asked = project.model.requestsFor('do-claude').length;
    expectCode(await project.reprise('capture', started?.runId ?? '', 'agents/claude'), 0);
    const played = await playElsewhere(project.root, 'agents/claude');
    expect(played).toMatchObject({ code: 0, stderr: '' });
    expect(project.model.requestsFor('do-claude')).toHaveLength(asked);
    expect(project.git('log', '--format=%s', '--', 'claude.txt')).toContain('claude: Done.');
  });

  test('replays parallel agents of each kind, each of which had to fix its work', async () => {
    const project = await agentProject({
      script: scriptFor(everyAgent, agent =>
        ['bad', 'good'].flatMap(content => [
          { say: 'I write it.', actions: [{ write: { path: `${agent}.txt`, content } }] },
          { say: 'Done.' },
        ]),
      ),
      steps: stepsFor(everyAgent, 'checks: ["grep -q good *.txt"], on_fail: { rework: 1 }'),
    });
    expectCode(await project.reprise('run', 'flow'), 0);
    const [started] = await project.history();
    expectCode(await project.reprise('capture', started?.runId ?? '', 'every_kind'), 0);
    const played = await playElsewhere(project.root, 'every_kind');
    expect(played).toMatchObject({ code: 0, stderr: '' });
  });
});
