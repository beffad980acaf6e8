import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  begunIn,
  commitFiles,
  type Files,
  logOf,
  makeRepository,
  type Play,
  perform,
  performAndKill,
  say,
  stageText,
  timesBegun,
} from './stage.ts';

/**
 * The program that plays the agent of the workers. It is told of a task as a real one is, and changes real files. What it
 * waits for makes the same things happen every time: `say-hello` is not done before `exclaim` was begun, so that both begin
 * with the same line; and whoever else is at work when the process is killed had not come to its end.
 */
const workersAgent = `import { readFileSync, writeFileSync } from 'node:fs';
import { begin, times, until } from './stage.mjs';

const task = process.env.REPRISE_TASK;
const tell = event => console.log(JSON.stringify(event));
const say = text => tell({ type: 'text', text });
const session = begin(task);

const never = () => {
  say('This will take a while.');
  return until(() => false);
};

const change = (from, to) => {
  const text = readFileSync('greet.mjs', 'utf8');
  writeFileSync('greet.mjs', text.replace(from, to));
};

/** What main says there; what this task is about is then done again. */
const conflict = /^<<<<<<< .*\\n([\\s\\S]*?)^=======\\n[\\s\\S]*?^>>>>>>> .*\\n/m;

const work = {
  'say-hello': async () => {
    await until(() => times('exclaim') > 0);
    say('Hi becomes Hello.');
    change("'Hi, '", "'Hello, '");
  },
  exclaim: async () => {
    if (session === 1) await never();
    if (conflict.test(readFileSync('greet.mjs', 'utf8'))) {
      say('main says Hello by now; both changes are wanted.');
      change(conflict, '$1');
    } else say('One exclamation mark more.');
    change(/ name;/, " name + '!';");
  },
  'write-guide': async () => {
    if (session === 1) await never();
    say('Writing GUIDE.md.');
    writeFileSync('GUIDE.md', '# Guide\\n\\nCall greet(name).\\n');
  },
};

readFileSync(0);
await work[task]();
tell({ type: 'result', text: 'Done.\\n\\n<next>land</next>' });
`;

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

interface DemoTask {
  readonly id: string;
  readonly title: string;
  readonly priority: string;
}

/** The first two change the same line. */
const demoTasks: readonly DemoTask[] = [
  { id: 'say-hello', title: 'Say Hello instead of Hi', priority: 'P0' },
  { id: 'exclaim', title: 'Greet with an exclamation mark', priority: 'P1' },
  { id: 'write-guide', title: 'Write a guide', priority: 'P2' },
];

const taskText = ({ title, priority }: DemoTask): string =>
  `---\npriority: ${priority}\nstate: ready\n---\n\n# ${title}\n`;

/** A small project, before `reprise init`. */
const makeWorkersProject = (folder: string): void => makeRepository(folder, project);

/** What somebody does after `reprise init`: says who the agent is and what tests the project, and writes tasks. */
function equipWorkersProject(folder: string): void {
  const settings = readFileSync(join(folder, 'reprise.yaml'), 'utf8');
  const files = {
    ...agent,
    'reprise.yaml': settings.replace('# verify: npm test', 'verify: node test.mjs'),
    ...Object.fromEntries(demoTasks.map(task => [`issues/${task.id}.md`, taskText(task)])),
  };
  commitFiles(folder, { files, message: 'Write down what is to be done' });
}

/**
 * Two workers do three tasks at once, are killed in the middle, go on where they were, and one solves the conflict that it
 * has with the other before its work lands.
 */
export const playWorkers: Play = async stage => {
  const { root, scene } = stage;
  const worker = ['worker', '--workers', '2', '--until-idle'];
  makeWorkersProject(root);
  say(stage, `Two workers, three tasks, one kill -9 and one conflict, in a new repository:\n${root}`);
  if (!(await perform(stage, ['init']))) return undefined;
  equipWorkersProject(root);
  say(
    stage,
    [
      '\nThree tasks are on main. A script plays the agent, so no account is needed.',
      ...demoTasks.map(
        ({ id, priority, title }) => `  issues/${`${id}.md`.padEnd(15)} ${priority}  ${title}`,
      ),
      'The first two change the same line.',
    ].join('\n'),
  );
  // Whoever has landed the first takes the last: by then one has landed, and both are in the middle of another.
  await performAndKill(stage, worker, () => begunIn(scene, 'write-guide') > 0);
  say(stage, '\nkill -9: one task has landed, and the workers were busy with the others.');
  if (!(await perform(stage, worker))) return undefined;
  say(
    stage,
    [
      '\nHow often the agent was at work on each:',
      ...timesBegun(stage, {
        'say-hello': undefined,
        exclaim: 'killed in the middle, done, then the conflict',
        'write-guide': 'killed in the middle, then done',
      }),
      'What is on main now, and the line that two of them changed:',
      ...logOf(root),
      `  ${readFileSync(join(root, 'greet.mjs'), 'utf8').trimEnd()}`,
    ].join('\n'),
  );
  return 'tasks';
};
