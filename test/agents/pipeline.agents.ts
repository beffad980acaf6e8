import { describe, expect, test } from 'vitest';
import { installedAgents } from './support/install.ts';
import { agentProject, endsIn, everyAgent, expectCode, of, sessionsIn } from './support/project.ts';

describe.skipIf(!installedAgents())('a run with real agents', () => {
  test('x', async () => {
    const project = await agentProject({
      script: Object.fromEntries(everyAgent.map(a => [`edit-${a}`, [
          { say: 'I write it.', actions: [{ write: { path: `${a}.txt`, content: 'hello\n' } }] },
          { say: 'Done.' },
        ]])),
      steps: everyAgent.map(a => `  - { id: ${a}, agent: ${a}, prompt: "Please [[edit-${a}]]." }\n`).join(''),
    });
    const result = await project.reprise('run', 'flow');
    console.log(result);
    const h = await project.history();
    console.log(JSON.stringify(h, undefined, 1));
    console.log(project.git('log', '--all', '--graph', '--stat'));
    expectCode(result, 0);
  });
});
