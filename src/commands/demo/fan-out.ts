import { join } from 'node:path';
import { openStore } from '../../project/index.ts';
import {
  begunIn,
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
 * A test fails. Three copies of one agent try to fix it, each in its own worktree, while two copies of another write
 * documentation. The smallest change that passes the test lands, then the documentation.
 */
const fix = `name: fix
steps:
  - id: reproduce
    retry: { attempts: 3, backoff: 500ms }
    run: node demo/reproduce.mjs
  - id: fix
    needs: [reproduce]
    agent: coder
    concurrency: 3
    prompt: |
      The test says: \${{ steps.reproduce.outputs.failure }}
      Fix greet.mjs.
    select:
      gates: [node test.mjs]
      rank: node demo/size-of-change.mjs
  - id: docs
    needs: [reproduce]
    agent: writer
    strategy: { matrix: { file: [GUIDE.md, FAQ.md] } }
    prompt: Write \${{ matrix.file }}.
  - id: land
    needs: [fix]
    land: main
    from: fix
    verify: node test.mjs
  - id: land_docs
    needs: [land, docs]
    land: main
    from: docs
outputs:
  winner: \${{ steps.fix.outputs.selected }}
  landed: \${{ steps.land.outputs.outcome }}
`;

/** Both agents are scripts that Reprise runs itself, so they need no account and cost nothing. */
const config = `agents:
  coder:
    kind: scripted
    allow: ["Bash(node demo/coder.mjs)"]
    script:
      - think: There is more than one way to do this.
      - run: node demo/coder.mjs
      - say: The greeting is fixed.
  writer:
    kind: scripted
    allow: ["Bash(node demo/writer.mjs)"]
    script:
      - run: node demo/writer.mjs
      - say: Written.
`;

/**
 * The first copy writes a long fix, the second a wrong one, the third a short one. The third waits until it has been killed
 * once, so that a resume always has the same work left.
 */
const coder = `import { writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { begin, until } from './stage.mjs';

const worker = process.env.REPRISE_WORKER;
const fixes = [
  "export function greet(name) {\\n  const words = ['Hello', name];\\n  const text = words.join(', ');\\n  return text + '!';\\n}\\n",
  "export const greet = name => 'Hallo, ' + name + '!';\\n",
  "export const greet = name => 'Hello, ' + name + '!';\\n",
];
if (begin(\`fix:\${worker}\`) === 1 && worker === '2') await until(() => false);
await setTimeout(700);
writeFileSync('greet.mjs', fixes[worker]);
`;

const writer = `import { writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { begin } from './stage.mjs';

const worker = process.env.REPRISE_WORKER;
const file = ['GUIDE.md', 'FAQ.md'][worker];
begin(\`docs:\${worker}\`);
await setTimeout(900);
writeFileSync(file, \`# \${file.slice(0, -3)}\\n\\nCall greet(name).\\n\`);
`;

/** Fails on the first attempt, like a service that is not up yet. */
const reproduce = `import { spawnSync } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { begin } from './stage.mjs';

if (begin('reproduce') === 1) {
  console.error('connection refused');
  process.exit(1);
}
const { status, stderr } = spawnSync('node', ['test.mjs'], { encoding: 'utf8' });
if (status === 0) throw new Error('the test passes');
appendFileSync(process.env.REPRISE_OUTPUT, \`failure=\${stderr.trim()}\\n\`);
`;

const sizeOfChange = `import { execFileSync } from 'node:child_process';

// The highest score wins.
console.log(-execFileSync('git', ['diff', 'main', '--', 'greet.mjs']).length);
`;

const test = `import { greet } from './greet.mjs';

if (greet('world') !== 'Hello, world!') {
  console.error('expected "Hello, world!" and got "' + greet('world') + '"');
  process.exit(1);
}
`;

const files: DemoFiles = {
  'README.md': '# A small project\n',
  'greet.mjs': "export const greet = name => 'Hello, ' + name;\n",
  'test.mjs': test,
  'demo/stage.mjs': stageText,
  'demo/coder.mjs': coder,
  'demo/writer.mjs': writer,
  'demo/reproduce.mjs': reproduce,
  'demo/size-of-change.mjs': sizeOfChange,
  'reprise.yaml': config,
  '.reprise/workflows/fix.yaml': fix,
};

/** Creates a repository with a failing test, two agents and a workflow. */
const makeFanOutProject = (folder: string): void => makeRepository(folder, files);

/**
 * Runs five agents in parallel, each in its own workspace, and kills the process. A resume keeps the finished work, selects
 * the best result and lands it.
 */
export const playFanOut: DemoScript = async stage => {
  const { root, scene } = stage;
  makeFanOutProject(root);
  say(
    stage,
    [
      `Five parallel agents and one kill -9, in a new repository:\n${root}`,
      '\nIts test fails. Three copies of one agent try to fix it, each in its own',
      'worktree, while two others write documentation. The smallest change that passes',
      'the test lands, then the documentation. The agents are scripts, so you need no',
      'account.',
    ].join('\n'),
  );
  await performAndKill(
    stage,
    ['run', 'fix'],
    async () => begunIn(scene, 'fix:2') > 0 && (await areFourDone(root)),
  );
  say(stage, '\nkill -9: four agents were done, and one was still working.');
  if (!(await perform(stage, ['resume']))) return undefined;
  say(
    stage,
    [
      '\nHow often each step and copy ran:',
      ...timesBegun(stage, {
        reproduce: 'the first attempt failed and was retried',
        'fix:0': undefined,
        'fix:1': undefined,
        'fix:2': 'killed, then completed',
        'docs:0': undefined,
        'docs:1': undefined,
      }),
      'Commits on main:',
      ...logOf(root),
    ].join('\n'),
  );
  return 'history';
};

/** Whether four copies have completed according to the history, which is what a resume reads. */
async function areFourDone(root: string): Promise<boolean> {
  const store = await openStore(join(root, '.git', 'reprise'), { readonly: true }).catch(() => undefined);
  if (!store) return false;
  try {
    const [run] = await store.list();
    const history = run ? await store.read(run.runId) : [];
    return (
      history.filter(({ type, worker }) => type === 'step.completed' && worker !== undefined).length === 4
    );
  } finally {
    await store.close();
  }
}
