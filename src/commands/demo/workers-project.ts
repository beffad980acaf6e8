import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { commitFiles, type Files, makeRepository } from './repository.ts';
import { stageText } from './stage-text.ts';
import { workersAgent } from './workers-agent.ts';

const project: Files = {
  'README.md': '# A small project\n',
  'greet.mjs': "export const greet = name => 'Hi, ' + name;\n",
  'test.mjs': `import { greet } from './greet.mjs';

if (!/^\\w+, world!?$/.test(greet('world'))) {
  console.error('that is no greeting: ' + greet('world'));
  process.exit(1);
}
`,
};

/** Instead of a model: a program that needs no account, and costs nothing. */
const agent: Files = {
  'demo/agent.mjs': workersAgent,
  'demo/stage.mjs': stageText,
  '.reprise/agents/implement.md': `---
kind: command
command: [node, demo/agent.mjs]
description: Does a task.
---
`,
};

export interface DemoTask {
  readonly id: string;
  readonly title: string;
  readonly priority: string;
}

/** The first two change the same line. */
export const demoTasks: readonly DemoTask[] = [
  { id: 'say-hello', title: 'Say Hello instead of Hi', priority: 'P0' },
  { id: 'exclaim', title: 'Greet with an exclamation mark', priority: 'P1' },
  { id: 'write-guide', title: 'Write a guide', priority: 'P2' },
];

const taskText = ({ title, priority }: DemoTask): string =>
  `---\npriority: ${priority}\nstate: ready\n---\n\n# ${title}\n`;

/** A small project, before `reprise init`. */
export const makeWorkersProject = (folder: string): void => makeRepository(folder, project);

/** What somebody does after `reprise init`: says who the agent is and what tests the project, and writes tasks. */
export function equipWorkersProject(folder: string): void {
  const settings = readFileSync(join(folder, 'reprise.yaml'), 'utf8');
  const files = {
    ...agent,
    'reprise.yaml': settings.replace('# verify: npm test', 'verify: node test.mjs'),
    ...Object.fromEntries(demoTasks.map(task => [`issues/${task.id}.md`, taskText(task)])),
  };
  commitFiles(folder, { files, message: 'Write down what is to be done' });
}
