// biome-ignore-all lint/suspicious/noTemplateCurlyInString: `${{ }}` is the syntax that this page is about.
import { block } from './markdown.ts';

export const inputsSample = `
inputs:
  version: { required: true, description: What to release }
  target: { type: choice, options: [staging, production], default: staging }
  retries: { type: number, default: 2 }
`;

/** One small example for each key of a step. */
export const examples: Readonly<Record<string, string>> = {
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

export const contexts: Readonly<Record<string, string>> = {
  'inputs.<name>': 'An input of the workflow.',
  'steps.<id>.outputs':
    'Output of a step in `needs`; `null` unless it completed. The `outputs` of the workflow can read every step.',
  'steps.<id>.outcome': 'How the step ended: `success`, `failure`, `cancelled` or `skipped`.',
  'steps.<id>.conclusion': 'Same as `outcome`, but `success` for an optional step that failed.',
  'steps.<id>.artifacts.<name>': 'Path of the stored copy of an artifact.',
  'steps.<id>.branch': 'Branch with the work of the step. With `select`, the branch of the selected copy.',
  'steps.<id>.commit': 'Last commit of that work.',
  'matrix.<key>':
    'Value of this copy, in a step with `strategy.matrix`. Not available in `if`, `strategy` and `select`.',
  'env.<name>': 'Variable from the `env` of the step or the workflow.',
};

/** A sample call and its result, for each function. */
export const functions: Readonly<Record<string, readonly string[]>> = {
  contains: [
    "`contains('release', 'lea')`",
    'Whether a string contains another string, or a list contains an item.',
  ],
  startsWith: ["`startsWith(inputs.version, 'v')`", 'Whether a string starts with another string.'],
  endsWith: ["`endsWith(inputs.file, '.md')`", 'Whether a string ends with another string.'],
  format: [
    "`format('{0}-{1}', 'a', 'b')`",
    'The string with its placeholders replaced; `{{` and `}}` stand for braces.',
  ],
  join: [
    "`join(steps.list.outputs.files, ' ')`",
    'The items of a list joined to one string. The separator defaults to `,`.',
  ],
  toJSON: ['`toJSON(inputs)`', 'The value as a JSON string.'],
  fromJSON: ["`fromJSON('[1, 2]')`", 'The value of a JSON string.'],
  success: [
    '`success()`',
    'True if no step before this one has failed. Implied in an `if` without a status function.',
  ],
  failure: ['`failure()`', 'True if a step before this one has failed.'],
  cancelled: [
    '`cancelled()`',
    'True if the workflow was cancelled. No step starts after a cancellation, so it is never true in a step that runs.',
  ],
  always: ['`always()`', 'Always true, no matter how the steps before this one ended.'],
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
  'An agent runs in its own git worktree, and so does a script with copies, `setup`, `checks`, `teardown` or `artifacts`. Any other script runs in the project folder, unless there is exactly one earlier step whose work it can continue: then it runs in a worktree on that work.',
  'Without a `base`, a workspace begins at the last commit of the nearest earlier step with work. Approvals, child workflows, scripts without a workspace, read-only workspaces and copies without `select` are skipped. If there are several such steps and one was built on top of all the others, the workspace begins at that one. Otherwise it begins at the base of the run.',
  'A `base` is the id of an earlier step, or a commit or branch. If a branch has the same name as a step, write `refs/heads/<name>`.',
];

export const fanOutNotes = [
  'A step with `concurrency` above 1 or with `strategy.matrix` runs as several copies, each in its own workspace. It ends when all copies have ended. Its output is:',
  block(
    'text',
    `
worker_results: # one entry for each copy, in order
  - { index: 0, status: completed, output: ..., workspace: ..., branch: ..., cost: 0.12, duration_ms: 5300 }
  - { index: 1, status: failed, error: { code: ... }, workspace: ..., branch: ..., cost: null, duration_ms: 900 }
total_workers: 2
success_count: 1
fail_count: 1
cancelled_count: 0
selected: 0 # with select`,
  ),
  'In a `matrix`, the first key varies slowest. `exclude` removes combinations. `include` adds its values to every combination that it does not contradict, or becomes a combination of its own. The whole matrix can be a single `${{ }}` that evaluates to such a map, or to a list of maps.',
];
