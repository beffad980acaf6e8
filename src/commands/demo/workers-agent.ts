/**
 * The program that plays the agent of the workers. It is told of a task as a real one is, and changes real files. What it
 * waits for makes the same things happen every time: `say-hello` is not done before `exclaim` was begun, so that both begin
 * with the same line; and whoever else is at work when the process is killed had not come to its end.
 */
export const workersAgent = `import { readFileSync, writeFileSync } from 'node:fs';
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
