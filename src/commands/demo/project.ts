import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { agentText } from './agent-text.ts';

type Files = Readonly<Record<string, string>>;

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
  'demo/agent.mjs': agentText,
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

/** Makes a real repository with a small project in it. */
export function makeDemoProject(folder: string): void {
  const git = gitIn(folder);
  git('init', '--quiet', '--initial-branch=main');
  git('config', 'user.name', 'Demo');
  git('config', 'user.email', 'demo@example.com');
  write(folder, project);
  commit(folder, 'Greet people');
}

/** What somebody does after `reprise init`: says who the agent is and what tests the project, and writes tasks. */
export function equipDemoProject(folder: string): void {
  const settings = readFileSync(join(folder, 'reprise.yaml'), 'utf8');
  write(folder, {
    ...agent,
    'reprise.yaml': settings.replace('# verify: npm test', 'verify: node test.mjs'),
    ...Object.fromEntries(demoTasks.map(task => [`issues/${task.id}.md`, taskText(task)])),
  });
  commit(folder, 'Write down what is to be done');
}

/** The subjects of what is on main, the newest first. */
export const demoLog = (folder: string): readonly string[] =>
  gitIn(folder)('log', '--format=%h %s', 'main').trimEnd().split('\n');

function write(folder: string, files: Files): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

function commit(folder: string, message: string): void {
  const git = gitIn(folder);
  git('add', '.');
  git('-c', 'commit.gpgsign=false', 'commit', '--quiet', '--no-verify', '-m', message);
}

const gitIn =
  (folder: string) =>
  (...args: readonly string[]): string =>
    execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' });
