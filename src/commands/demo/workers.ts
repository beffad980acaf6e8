import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  begunIn,
  commitFiles,
  type DemoFiles,
  type DemoScript,
  logOf,
  makeRepository,
  perform,
  performAndKill,
  say,
  stageText,
  timesBegun,
} from './stage.ts';

/**
 * Script of the agent. It gets a task like a real agent and changes real files. Its waits make every demo alike: `say-hello`
 * waits until `exclaim` has started, so that both change the same line, and the other two tasks wait to be killed once.
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

/** A conflict. Its first side is the text on main, to which this task applies its change again. */
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
      say('main says Hello now; keeping both changes.');
      change(conflict, '$1');
    } else say('Adding an exclamation mark.');
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

const project: DemoFiles = {
  'README.md': '# A small project\n',
  'greet.mjs': "export const greet = name => 'Hi, ' + name;\n",
  'test.mjs': `import { greet } from './greet.mjs';

if (!/^\\w+, world!?$/.test(greet('world'))) {
  console.error('not a greeting: ' + greet('world'));
  process.exit(1);
}
`,
};

/** The agent is a program instead of a model, so it needs no account and costs nothing. */
const agent: DemoFiles = {
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

/** Creates a small project, before `reprise init`. */
const makeWorkersProject = (folder: string): void => makeRepository(folder, project);

/** Does what a user does after `reprise init`: defines the agent, sets the test command and writes tasks. */
function equipWorkersProject(folder: string): void {
  const settings = readFileSync(join(folder, 'reprise.yaml'), 'utf8');
  const files = {
    ...agent,
    'reprise.yaml': settings.replace('# verify: npm test', 'verify: node test.mjs'),
    ...Object.fromEntries(demoTasks.map(task => [`issues/${task.id}.md`, taskText(task)])),
  };
  commitFiles(folder, { files, message: 'Add tasks' });
}

/**
 * Runs two workers on three tasks and kills their process. When started again, they resume both tasks, and one of them
 * resolves a conflict before its work lands.
 */
export const playWorkers: DemoScript = async stage => {
  const { root, scene } = stage;
  const worker = ['worker', '--workers', '2', '--until-idle'];
  makeWorkersProject(root);
  say(stage, `Two workers, three tasks, one kill -9 and one conflict, in a new repository:\n${root}`);
  if (!(await perform(stage, ['init']))) return undefined;
  equipWorkersProject(root);
  say(
    stage,
    [
      '\nThree tasks are on main. The agent is a script, so you need no account.',
      ...demoTasks.map(
        ({ id, priority, title }) => `  issues/${`${id}.md`.padEnd(15)} ${priority}  ${title}`,
      ),
      'The first two change the same line.',
    ].join('\n'),
  );
  // The worker that lands the first task takes the last one. From then on, one task has landed and two are in progress.
  await performAndKill(stage, worker, () => begunIn(scene, 'write-guide') > 0);
  say(stage, '\nkill -9: one task has landed, and the workers were working on the other two.');
  if (!(await perform(stage, worker))) return undefined;
  say(
    stage,
    [
      '\nHow often the agent was started for each task:',
      ...timesBegun(stage, {
        'say-hello': undefined,
        exclaim: 'killed, completed, then resolved the conflict',
        'write-guide': 'killed, then completed',
      }),
      'Commits on main, and the line that two tasks changed:',
      ...logOf(root),
      `  ${readFileSync(join(root, 'greet.mjs'), 'utf8').trimEnd()}`,
    ].join('\n'),
  );
  return 'tasks';
};
