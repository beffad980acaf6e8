// biome-ignore-all lint/suspicious/noTemplateCurlyInString: `${{ }}` is the syntax that this page is about.
import { block } from './markdown.mjs';

export const inputsSample = `
inputs:
  version: { required: true, description: What to release }
  target: { type: choice, options: [staging, production], default: staging }
  retries: { type: number, default: 2 }
`;

/** One small example for each key of a step. */
export const examples = {
  id: '- { id: build, run: make }',
  name: '- { id: build, name: Build the app, run: make }',
  needs: '- { id: test, needs: [build, lint], run: make test }',
  if: `
- { id: notify, needs: [build], if: failure(), run: ./notify.sh }
- { id: publish, needs: [build], if: inputs.target == 'production', run: ./publish.sh }`,
  env: '- { id: build, run: make, env: { VERSION: "${{ inputs.version }}" } }',
  optional: '- { id: lint, run: npm run lint, optional: true }',
  retry: `
- { id: fetch, run: ./fetch.sh, retry: 3 }
- id: upload
  run: ./upload.sh
  retry: { attempts: 5, backoff: { initial: 2s, factor: 3, max: 1m }, on: [EXIT_NONZERO, TIMEOUT] }`,
  timeout: `
- { id: test, run: npm test, timeout: 10m }
- { id: deploy, run: ./deploy.sh, retry: 3, timeout: { attempt: 5m, step: 12m } }`,
  'timeout-minutes': '- { id: test, run: npm test, timeout-minutes: 10 }',
  run: `
- id: version
  run: |
    echo "tag=v$(cat VERSION)" >> "$REPRISE_OUTPUT"
- id: build
  needs: [version]
  run: docker build -t app:\${{ steps.version.outputs.tag }} .`,
  shell: '- { id: build, run: ./configure && make, shell: sh }',
  'working-directory': '- { id: docs, run: npm run build, working-directory: docs }',
  output: `
- id: measure
  run: |
    echo '{ "size": 512 }' > "$REPRISE_OUTPUT"
  output: { type: object, properties: { size: { type: number } }, required: [size] }`,
  uses: '- { id: staging, uses: ./deploy.yaml, with: { target: staging } }',
  with: '- { id: staging, needs: [build], uses: deploy, with: { image: "${{ steps.build.outputs.image }}" } }',
  budget: '- { id: fix, agent: coder, prompt: Fix it., budget: { cost_usd: 2, minutes: 20 } }',
  agent: '- { id: plan, agent: planner, prompt: "Plan a fix for ${{ inputs.issue }}." }',
  prompt: `
- { id: plan, agent: planner, prompt: "Plan a fix for \${{ inputs.issue }}." }
- { id: fix, needs: [plan], agent: coder, prompt: { file: prompts/fix.md } }`,
  permissions: `
- { id: plan, agent: planner, prompt: Plan it., permissions: read-only }
- id: fix
  agent: coder
  prompt: Fix it.
  permissions: { preset: edit, allow: ["Bash(npm test)"], deny: [WebFetch] }`,
  max_turns: '- { id: fix, agent: coder, prompt: Fix it., max_turns: 40 }',
  on_fail: '- { id: fix, agent: coder, prompt: Fix it., checks: [npm test], on_fail: { rework: 3 } }',
  workspace: `
- { id: review, needs: [fix], agent: critic, prompt: Review it., workspace: readonly }
- { id: deploy, needs: [fix], run: ./deploy.sh, workspace: none }
- { id: hotfix, agent: coder, prompt: Fix it., workspace: { base: release, branch: hotfix } }`,
  setup: '- { id: fix, agent: coder, prompt: Fix it., setup: [npm ci] }',
  checks: '- { id: fix, agent: coder, prompt: Fix it., checks: [npm test, npm run lint] }',
  teardown: '- { id: e2e, run: npm run e2e, setup: [docker compose up -d], teardown: [docker compose down] }',
  artifacts: `
- { id: audit, agent: critic, prompt: Write report.md., artifacts: [report.md] }
- { id: show, needs: [audit], run: "cat \${{ steps.audit.artifacts.report }}" }`,
  concurrency: '- { id: fix, agent: coder, prompt: Fix it., concurrency: 3 }',
  strategy: `
- id: docs
  needs: [plan]
  strategy: { matrix: { file: "\${{ steps.plan.outputs.files }}" }, max-parallel: 2, fail-fast: false }
  agent: coder
  prompt: Document \${{ matrix.file }}.`,
  select: `
- id: fix
  agent: coder
  prompt: Fix it.
  concurrency: 3
  select: { gates: [npm test], judge: { agent: critic, prompt: Which one is simplest? } }`,
  land: '- { id: land, needs: [fix], land: main }',
  from: '- { id: land, needs: [fix, docs], land: main, from: fix }',
  verify: '- { id: land, needs: [fix], land: main, verify: npm test }',
  approve: `
- { id: ok, needs: [test], approve: "Release \${{ inputs.version }}?" }
- id: how
  approve: { message: How far?, choices: [staging, production, reject] }`,
};

export const contexts = {
  'inputs.<name>': 'An input of the workflow.',
  'steps.<id>.outputs':
    'What a step in `needs` gave; `null` unless it completed. `outputs` of the workflow read every step.',
  'steps.<id>.outcome': 'How it ended: `success`, `failure`, `cancelled` or `skipped`.',
  'steps.<id>.conclusion': 'The same, but `success` for an optional step that failed.',
  'steps.<id>.artifacts.<name>': 'The path of the copy of a file that it left.',
  'steps.<id>.branch': 'The branch that its work is on; for copies with `select`, that of the selected one.',
  'steps.<id>.commit': 'The last commit of that work.',
  'matrix.<key>':
    'The value of this copy, in a step with `strategy.matrix`. Not in `if`, `strategy` and `select`.',
  'env.<name>': 'A variable from an `env` of the step or the workflow.',
};

/** The call and what it gives, for each function. */
export const functions = {
  contains: ["`contains('release', 'lea')`", 'Whether a text holds another, or a list an item.'],
  startsWith: ["`startsWith(inputs.version, 'v')`", 'Whether a text begins so.'],
  endsWith: ["`endsWith(inputs.file, '.md')`", 'Whether a text ends so.'],
  format: [
    "`format('{0}-{1}', 'a', 'b')`",
    'The text with its placeholders filled; `{{` and `}}` are braces.',
  ],
  join: [
    "`join(steps.list.outputs.files, ' ')`",
    'The items of a list as one text; `,` between them unless given.',
  ],
  toJSON: ['`toJSON(inputs)`', 'The value as JSON text.'],
  fromJSON: ["`fromJSON('[1, 2]')`", 'The value of a JSON text.'],
  success: [
    '`success()`',
    'Nothing that the step comes after has failed. Implied in an `if` that calls no status function.',
  ],
  failure: ['`failure()`', 'Something that the step comes after has failed.'],
  cancelled: [
    '`cancelled()`',
    'The workflow was cancelled. After a cancellation no step starts, so this is never true in a step that runs.',
  ],
  always: ['`always()`', 'True, however the steps before ended.'],
};

export const configSample = `
runtime:
  max_concurrent_workers: 4
  budget: { minutes: 30, cost_usd: 20 }
worktrees: { setup: [npm ci], include: [.env] }
tasks: { folder: issues }
workers: { branch: main, agent: implement, land: main, verify: npm test }
`;

export const agentsSample = `
agents:
  planner: { kind: claude, model: opus, permissions: read-only }
  coder: { kind: claude, permissions: edit, allow: ["Bash(npm test)"] }
  toy: { kind: command, command: [node, agent.js] }
  review:
    kind: claude
    description: Looks for errors in finished work.
    inputs: { summary: { description: What was done }, doubts: { required: false } }
`;

export const workspaceNotes = [
  'An agent works in a git worktree of its own, and so does a script that has copies, `setup`, `checks`, `teardown` or `artifacts`. Any other script works in the folder of the project, unless it comes after work: then it works in a worktree on that.',
  'Without a `base`, a workspace begins where the nearest work before it left off, if that is one: questions, child workflows, scripts without a workspace, read-only workspaces and copies without `select` are passed over, and work that a later one goes on from does not count beside it. If there is none, or there are several that do not hold each other, it begins at the base of the run.',
  'A `base` is the id of a step that comes before, or else the name of a commit or branch; a branch that is called like a step is written `refs/heads/<name>`.',
];

export const fanOutNotes = [
  'A step with `concurrency` above 1 or with `strategy.matrix` becomes many copies, each in a workspace of its own. It ends when all of them have, and gives:',
  block(
    'text',
    `
worker_results: # one for each copy, in order
  - { index: 0, status: completed, output: ..., workspace: ..., branch: ..., cost: 0.12, duration_ms: 5300 }
  - { index: 1, status: failed, error: { code: ... }, workspace: ..., branch: ..., cost: null, duration_ms: 900 }
total_workers: 2
success_count: 1
fail_count: 1
cancelled_count: 0
selected: 0 # with select`,
  ),
  'In a `matrix` the first key varies slowest; `exclude` takes combinations away, and `include` adds to those that it does not contradict, or becomes one of its own. The whole matrix may be one `${{ }}` that gives such a map, or a list of maps.',
];
