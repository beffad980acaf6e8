import { expect, test } from 'vitest';
import { bodyOf, load, problemsIn, scopeOf, shortProblemsIn, stepOf } from '../test-support.ts';

const fix = '{ id: fix, agent: coder, prompt: p }';
const three = '{ id: many, agent: coder, prompt: p, concurrency: 3 }';

test('a landing has a target branch, a source step and a verification', () => {
  const model = load(
    `inputs: { to: {} }\nsteps: [${fix}, { id: l, needs: fix, land: "release/\${{ inputs.to }}", from: fix, verify: "npm test \${{ inputs.to }}" }]`,
  );
  const body = bodyOf(model, 'l', 'land');
  const scope = scopeOf({ inputs: { to: '1' } });
  expect(body).toMatchObject({ from: 'fix', verify: { text: 'npm test ${{ inputs.to }}' } });
  expect(body.onto(scope)).toBe('release/1');
  expect(body.verify?.command(scope)).toMatchObject({
    script: 'npm test "${REPRISE_VALUE_1}"',
    env: { REPRISE_VALUE_1: '1' },
  });
});

test.each([
  ['the only work before it', `${fix}, { id: l, needs: fix, land: main }`, 'fix'],
  [
    'the work before an approval',
    `${fix}, { id: ok, needs: fix, approve: ok? }, { id: l, needs: ok, land: main }`,
    'fix',
  ],
  [
    'the work of a script that ran on it',
    `${fix}, { id: lint, needs: fix, run: ls }, { id: l, needs: lint, land: main }`,
    'lint',
  ],
  [
    'the selected copy of a fan-out',
    `{ id: best, agent: c, prompt: p, concurrency: 3, select: { gates: ls } }, { id: l, needs: best, land: main }`,
    'best',
  ],
  ['all copies of a fan-out with `from`', `${three}, { id: l, needs: many, land: main, from: many }`, 'many'],
])('a landing lands %s', (_, steps, expected) => {
  expect(bodyOf(load(`steps: [${steps}]`), 'l', 'land').from).toBe(expected);
});

test('an ambiguous landing is rejected with a hint', () => {
  expect(
    problemsIn(`steps:
  - ${fix}
  - { id: docs, agent: coder, prompt: p }
  - { id: l, needs: [fix, docs], land: main }
`),
  ).toMatchInlineSnapshot(`
    "
    main.yaml:4:34: the step must name the work to land: \`fix\` or \`docs\`
       4 |   - { id: l, needs: [fix, docs], land: main }
         |                                  ^^^^
      hint: add \`from: fix\`
    "
  `);
});

test.each<[string, readonly string[]]>([
  ['{ id: l, land: main }', ['[land] no earlier step leaves work to land']],
  [`${three}, { id: l, needs: many, land: main }`, ['[land] the step must name the work to land: `many`']],
  [
    `${fix}, { id: docs, needs: fix, agent: c, prompt: p, concurrency: 2 }, { id: l, needs: docs, land: main }`,
    ['[land] the step must name the work to land: `fix` or `docs`'],
  ],
  [`${fix}, { id: l, needs: fix, land: main, from: fxi }`, ['[fxi] unknown step `fxi`']],
  [
    `${fix}, { id: l, land: main, from: fix }`,
    ['[fix] step `l` cannot land the work of step `fix` without depending on it'],
  ],
  [
    `{ id: r, agent: c, prompt: p, workspace: readonly }, { id: l, needs: r, land: main, from: r }`,
    ['[r] step `r` leaves no work, because its workspace is read-only'],
  ],
  [
    `{ id: s, run: ls }, { id: l, needs: s, land: main, from: s }`,
    ['[s] step `s` leaves no work, because it has no workspace of its own'],
  ],
  [
    `${fix}, { id: l, needs: fix, land: main, concurrency: 2 }`,
    [
      '[concurrency] `concurrency` is only allowed in steps with `run`, `agent` or `uses`, but this step has `land`',
    ],
  ],
  [
    `{ id: s, run: ls, from: x }`,
    ['[from] `from` is only allowed in steps with `land`, but this step has `run`'],
  ],
  [
    `{ id: s, run: ls, nedes: x }, { id: l, needs: s, land: main }`,
    ['[nedes] unknown key `nedes`', '[land] no earlier step leaves work to land'],
  ],
  [`{ id: fix, agent: coder }, { id: l, needs: fix, land: main }`, ['[coder] an agent requires a `prompt`']],
])('`steps: [%s]` has the problems %j', (steps, expected) => {
  expect(shortProblemsIn(`steps: [${steps}]`)).toEqual(expected);
});

test('a workflow with every kind of step loads', () => {
  const model = load(`
name: fix
inputs: { issue: { type: string, required: true } }
on_failure: fail-fast
steps:
  - id: plan
    agent: planner
    prompt: "Plan a fix for \${{ inputs.issue }}."
    output: { type: object, properties: { files: { type: array, items: { type: string } } }, required: [files] }
  - id: fix
    needs: [plan]
    agent: coder
    concurrency: 3
    prompt: "Fix it. Files: \${{ steps.plan.outputs.files }}"
    checks: ["npm test"]
    select: { gates: ["npm test"], rank: "node scripts/size-of-diff.js" }
  - id: docs
    needs: [plan]
    strategy: { matrix: { file: "\${{ steps.plan.outputs.files }}" }, max-parallel: 2, fail-fast: false }
    agent: coder
    prompt: "Document \${{ matrix.file }}"
  - { id: lint, needs: [fix], run: "npm run lint" }
  - { id: ok, needs: [lint, docs], approve: "Land it?" }
  - { id: land, needs: [ok], land: main, from: fix, verify: "npm test" }
`);
  expect(stepOf(model, 'fix').body).toMatchObject({
    work: { workspace: { base: { kind: 'step', id: 'plan' } } },
  });
  expect(stepOf(model, 'docs').fanOut).toMatchObject({
    kind: 'matrix',
    maxParallel: 2,
    onFailure: 'continue',
  });
  expect(stepOf(model, 'lint').body).toMatchObject({
    work: { workspace: { base: { kind: 'step', id: 'fix' } } },
  });
  expect(stepOf(model, 'land').body).toMatchObject({ kind: 'land', from: 'fix' });
});
