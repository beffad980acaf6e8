import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * The workflow that the demo runs. A test fails; three copies of one agent try to mend it, each in a worktree of its own,
 * while two others write documentation; the smallest change that passes is landed, and then what was written.
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
      gates: ["node test.mjs"]
      rank: node demo/size-of-change.mjs
  - id: docs
    needs: [reproduce]
    agent: writer
    strategy: { matrix: { file: [GUIDE.md, FAQ.md] } }
    prompt: "Write \${{ matrix.file }}."
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

/** What the three copies do: the first mends it with much ado, the second not at all, the third takes its time. */
const coder = `import { appendFileSync, writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

const worker = process.env.REPRISE_WORKER;
appendFileSync(process.env.DEMO_MARKS, \`fix:\${worker}\\n\`);
const ways = [
  "export function greet(name) {\\n  const words = ['Hello', name];\\n  const text = words.join(', ');\\n  return text + '!';\\n}\\n",
  "export const greet = name => 'Hallo, ' + name + '!';\\n",
  "export const greet = name => 'Hello, ' + name + '!';\\n",
];
await setTimeout(worker === '2' ? 4000 : 700);
writeFileSync('greet.mjs', ways[worker]);
`;

const writer = `import { appendFileSync, writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

const file = ['GUIDE.md', 'FAQ.md'][process.env.REPRISE_WORKER];
appendFileSync(process.env.DEMO_MARKS, \`docs:\${process.env.REPRISE_WORKER}\\n\`);
await setTimeout(900);
writeFileSync(file, \`# \${file.slice(0, -3)}\\n\\nCall greet(name).\\n\`);
`;

/** The first time it cannot reach anything, as things are. */
const reproduce = `import { spawnSync } from 'node:child_process';
import { appendFileSync, readFileSync } from 'node:fs';

appendFileSync(process.env.DEMO_MARKS, 'reproduce\\n');
if (readFileSync(process.env.DEMO_MARKS, 'utf8') === 'reproduce\\n') {
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

const files = {
  'README.md': '# A small project\n',
  'greet.mjs': "export const greet = name => 'Hello, ' + name;\n",
  'test.mjs': test,
  'demo/coder.mjs': coder,
  'demo/writer.mjs': writer,
  'demo/reproduce.mjs': reproduce,
  'demo/size-of-change.mjs': sizeOfChange,
  'reprise.yaml': config,
  '.reprise/workflows/fix.yaml': fix,
};

/** Makes a real repository with a test that fails, two agents and the workflow in it. */
export function makeDemoProject(folder: string): void {
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: folder, env: { ...process.env, ...identity }, stdio: 'pipe' });
  git('init', '--quiet', '--initial-branch=main');
  git('config', 'user.name', identity.GIT_AUTHOR_NAME);
  git('config', 'user.email', identity.GIT_AUTHOR_EMAIL);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  git('add', '.');
  git('commit', '--quiet', '-m', 'Greet people');
}

const identity = {
  GIT_AUTHOR_NAME: 'Demo',
  GIT_AUTHOR_EMAIL: 'demo@example.com',
  GIT_COMMITTER_NAME: 'Demo',
  GIT_COMMITTER_EMAIL: 'demo@example.com',
};
