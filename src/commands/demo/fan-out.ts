import { join } from 'node:path';
import { openStore } from '../../project/open-engine.ts';
import {
  begunIn,
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
 * A test fails; three copies of one agent try to mend it, each in a worktree of its own, while two others write
 * documentation; the smallest change that passes is landed, and then what was written.
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
      Mend greet.mjs.
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

/** Both agents are scripts that Reprise plays itself: they need no account, and cost nothing. */
const config = `agents:
  coder:
    kind: scripted
    allow: ["Bash(node demo/coder.mjs)"]
    script:
      - think: There is more than one way to do this.
      - run: node demo/coder.mjs
      - say: The greeting is mended.
  writer:
    kind: scripted
    allow: ["Bash(node demo/writer.mjs)"]
    script:
      - run: node demo/writer.mjs
      - say: Written.
`;

/**
 * The first copy mends it with much ado, the second not at all. The third is not done before it has been killed once, so
 * that the same is left to do every time.
 */
const coder = `import { writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { begin, until } from './stage.mjs';

const worker = process.env.REPRISE_WORKER;
const ways = [
  "export function greet(name) {\\n  const words = ['Hello', name];\\n  const text = words.join(', ');\\n  return text + '!';\\n}\\n",
  "export const greet = name => 'Hallo, ' + name + '!';\\n",
  "export const greet = name => 'Hello, ' + name + '!';\\n",
];
if (begin(\`fix:\${worker}\`) === 1 && worker === '2') await until(() => false);
await setTimeout(700);
writeFileSync('greet.mjs', ways[worker]);
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

/** The first time something is not there yet, as things are. */
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

const files: Files = {
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

/** A repository with a test that fails, two agents and a workflow. */
const makeFanOutProject = (folder: string): void => makeRepository(folder, files);

/**
 * Five agents work at once in workspaces of their own, the process is killed in the middle, and a resume goes on without
 * doing finished work again, picks the best result and lands it.
 */
export const playFanOut: Play = async stage => {
  const { root, scene } = stage;
  makeFanOutProject(root);
  say(
    stage,
    [
      `Five agents at once and one kill -9, in a new repository:\n${root}`,
      '\nIts test fails. Three copies of one agent try to mend it, each in a worktree of',
      'its own, while two others write documentation. The smallest change that passes',
      'lands, then what was written. Scripts play the agents, so no account is needed.',
    ].join('\n'),
  );
  await performAndKill(
    stage,
    ['run', 'fix'],
    async () => begunIn(scene, 'fix:2') > 0 && (await areFourDone(root)),
  );
  say(stage, '\nkill -9: four agents were done, and one was in the middle of its work.');
  if (!(await perform(stage, ['resume']))) return undefined;
  say(
    stage,
    [
      '\nHow often each really ran:',
      ...timesBegun(stage, {
        reproduce: 'its first attempt failed, and it was tried again',
        'fix:0': undefined,
        'fix:1': undefined,
        'fix:2': 'killed in the middle, then done',
        'docs:0': undefined,
        'docs:1': undefined,
      }),
      'What is on main now:',
      ...logOf(root),
    ].join('\n'),
  );
  return 'history';
};

/** By the history, which is what a resume goes by: an agent that has ended may not be in it yet. */
async function areFourDone(root: string): Promise<boolean> {
  const store = await openStore(join(root, '.reprise', 'state'), { readonly: true }).catch(() => undefined);
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
