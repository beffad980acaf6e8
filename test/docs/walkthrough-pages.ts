import type { PagePlan } from './walkthrough.ts';

/** Pages that one reader follows in order, in the same folder. */
export type Walkthrough = Readonly<Record<string, PagePlan>>;

const newRepository = 'git init --quiet --initial-branch=main';
const commitAll = 'git add --all && git commit --quiet --message "Initial commit"';
const file = (path: string, ...lines: readonly string[]) =>
  `cat > ${path} <<'END_OF_FILE'\n${lines.join('\n')}\nEND_OF_FILE`;
const packageFile = file('package.json', '{ "scripts": { "test": "true" } }');
const example = (name: string) =>
  `cp -r "$CHECKOUT/examples/${name}/." . && ${newRepository} && ${commitAll}`;

/** Repository in which the workflow `bugfix` has run: three copies of an agent, the last of which was selected. */
const bugfix = [
  newRepository,
  packageFile,
  file(
    'reprise.yaml',
    'agents:',
    '  coder: &coder',
    '    kind: scripted',
    '    script: [{ write: { path: fix.txt, content: fixed } }, { say: Fixed the test. }]',
    '  claude: *coder',
  ),
  file(
    'bugfix.yaml',
    'name: bugfix',
    'steps:',
    '  - id: fix',
    '    agent: coder',
    '    concurrency: 3',
    '    prompt: Fix the failing test.',
    '    select: { rank: "echo $REPRISE_WORKER" }',
  ),
  commitAll,
  'reprise run bugfix.yaml',
].join('\n');

const installs = 'installs Reprise globally';
const needsClaude = 'needs an account, and the worker runs until Ctrl-C';
const needsCheckout = 'changes and rebuilds the checkout of Reprise';

/** Pages about workers and cases. */
export const testingPages: readonly Walkthrough[] = [
  {
    'docs/guide/testing.md': {},
    'docs/how-to/write-a-case.md': {},
    'docs/how-to/record-and-update-cases.md': {},
    'docs/how-to/run-cases.md': {},
    'docs/how-to/ask-what-if.md': {},
  },
  { 'docs/how-to/explore-your-own-code.md': {} },
  { 'docs/guide/workers.md': {} },
];

/** Pages that a new user reads first. Their workflows sleep, so that the reader can kill them. */
export const firstPages: readonly Walkthrough[] = [
  {
    'README.md': {
      setup: newRepository,
      before: { 'reprise run greet.yaml': commitAll },
      // Captures the first run: `reprise explore` refuses a case with a killed session.
      placeholders: { '<run>': `$(reprise list --json | tail -1 | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')` },
      exempt: {
        'npm ci && npm run demo': 'installs the dependencies of the checkout and runs these tests',
        'npm ci && npm pack && npm install --global ./reprise-0.1.0.tgz': installs,
        'reprise init': needsClaude,
      },
    },
  },
  {
    'docs/guide/getting-started.md': {
      before: {
        'reprise resume': 'sed -i s/example.com/example.org/ hello.yaml',
        'reprise run --agent claude --prompt "Add a test for the greeting."':
          'echo "  claude: { kind: scripted, script: [{ run: touch test.txt }] }" >> reprise.yaml',
      },
      exits: { 'reprise resume': 2 },
      exempt: { 'npm ci && npm pack': installs },
    },
  },
];

/** Pages about runs and their work. */
export const runPages: readonly Walkthrough[] = [
  {
    'docs/guide/approvals-and-signals.md': {
      setup: newRepository,
      files: {
        'name: publish': 'publish.yaml',
        'steps:': 'deploy.yaml',
        "import { step, workflow } from 'reprise';": 'invoice.mjs',
      },
      before: {
        'reprise approve <run> where --choice production': 'exits_with 3 reprise run deploy.yaml',
        'reprise cancel <run> --reason "wrong branch"': 'exits_with 3 reprise run deploy.yaml',
      },
      exits: { 'reprise run publish.yaml': 3, 'reprise run invoice.mjs': 3 },
    },
  },
  {
    'docs/guide/workflows-yaml.md': {
      setup: newRepository,
      files: { 'name: build': 'build.yaml' },
      before: {
        'reprise run build': 'mkdir -p .reprise/workflows && cp build.yaml .reprise/workflows',
        'echo "version=1.4.0" >> "$REPRISE_OUTPUT"        # key=value: the value is text':
          'REPRISE_OUTPUT=$HOME/output NOTES=none',
      },
    },
    'docs/guide/ci.md': {
      before: {
        'export REPRISE_STATE_DIR="$HOME/.cache/reprise/build"': 'ATTEMPT=1',
        'reprise test --reporter github': `${commitAll} && reprise run build && reprise capture <run> build`,
      },
    },
  },
  {
    'docs/guide/workflows-typescript.md': {
      setup: newRepository,
      files: { "import { step, workflow } from 'reprise';": 'order.mjs' },
    },
  },
  {
    'docs/guide/resume-replay-fork.md': {
      setup: [
        newRepository,
        file('two.yaml', 'steps:', '  - { id: a, run: "true" }', '  - { id: b, needs: [a], run: "true" }'),
        'reprise run two.yaml',
      ].join('\n'),
      before: { 'reprise resume <run> --rerun-changed': `sed -i '$s/true/echo b/' two.yaml` },
      placeholders: { '<step>': 'b' },
    },
  },
  {
    'docs/guide/failure-and-retries.md': {
      setup: [
        newRepository,
        file('check.yaml', 'steps: [{ id: check, run: test -e fixed }]'),
        'exits_with 1 reprise run check.yaml',
        'touch fixed',
      ].join('\n'),
    },
  },
  { 'docs/guide/fan-out.md': { setup: bugfix } },
  { 'docs/guide/watching.md': { setup: bugfix } },
  { 'docs/guide/workspaces-and-landing.md': { setup: bugfix } },
  {
    'docs/how-to/resolve-a-landing.md': {
      setup: [
        newRepository,
        packageFile,
        file(
          'reprise.yaml',
          'agents:',
          '  coder: { kind: scripted, script: [{ run: sh "$HOME/change" }, { say: Changed a file. }] }',
        ),
        file('fix.yaml', 'steps: [{ id: fix, agent: coder, prompt: Fix the test. }]'),
        file(
          'fix-and-land.yaml',
          'steps:',
          '  - { id: fix, agent: coder, prompt: Fix the test. }',
          '  - { id: land, needs: [fix], land: main }',
        ),
        'seq 9 > numbers.txt && echo one > words.txt',
        // Reports a conflict in words.txt and resolves it, in place of the reader.
        'echo "words.txt merge=both" > .gitattributes',
        `git config merge.both.driver 'git merge-file --quiet --union %A %O %B; exit 1'`,
        commitAll,
      ].join('\n'),
      before: {
        'git -C <workspace> rebase main': [
          'export GIT_EDITOR=true',
          'echo "echo two > words.txt" > "$HOME/change" && reprise run fix.yaml',
          'echo three > words.txt && git commit --quiet --all --message "Change the words"',
          'exits_with 6 reprise land <run> fix',
        ].join('\n'),
        'git -C <workspace> diff main...': [
          'echo "echo bug > bug.txt" > "$HOME/change" && reprise run fix.yaml',
          'exits_with 6 reprise land <run> fix --verify false',
          'echo fixed > <workspace>/bug.txt',
        ].join('\n'),
        'git stash push --include-untracked': [
          'echo "sed -i s/1/one/ numbers.txt" > "$HOME/change" && reprise run fix.yaml',
          'echo 10 >> numbers.txt',
          'exits_with 6 reprise land <run> fix',
        ].join('\n'),
        'reprise resume <run>': [
          'git checkout --quiet .',
          'echo "sed -i s/2/two/ numbers.txt" > "$HOME/change"',
          'echo 10 >> numbers.txt',
          'exits_with 6 reprise run fix-and-land.yaml',
          'git checkout --quiet .',
        ].join('\n'),
      },
      exits: { 'git -C <workspace> rebase main': 1 },
      placeholders: { '<workspace>': '.reprise/workspaces/fix/<run>/fix', '<files>': 'words.txt' },
    },
  },
  { 'docs/guide/agents.md': { setup: `${bugfix}\necho "Fix the failing test." > task.md` } },
  {
    'docs/how-to/run-workers.md': {
      setup: [
        newRepository,
        file(
          'reprise.yaml',
          'workers: { agent: coder }',
          'agents:',
          '  coder:',
          '    kind: scripted',
          '    script: [{ run: echo done > done.txt }, { say: "<next>land</next>" }]',
        ),
        'mkdir issues && echo "# Write done.txt" > issues/done.md',
        commitAll,
      ].join('\n'),
      exempt: { 'reprise init': needsClaude },
    },
  },
  { 'examples/best-of-three/README.md': { setup: example('best-of-three') } },
  { 'examples/matrix-agents/README.md': { setup: example('matrix-agents') } },
  { 'examples/tested-workflow/README.md': { setup: example('tested-workflow') } },
];

/** Pages of which no test runs any block, with the reason. */
export const exemptPages: Readonly<Record<string, string>> = {
  'CONTRIBUTING.md': needsCheckout,
  'docs/guide/find-the-race.md': needsCheckout,
  'examples/README.md': 'lists one command per example; `npm run examples` runs them all',
};
