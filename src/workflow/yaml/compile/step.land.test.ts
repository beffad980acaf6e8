import { expect, test } from 'vitest';
import { bodyOf, load, problemsIn, scopeOf, shortProblemsIn, stepOf } from '../test-support.ts';

const fix = '{ id: fix, agent: coder, prompt: p }';
const three = '{ id: many, agent: coder, prompt: p, concurrency: 3 }';

test('a landing says where to, whose work, and what must pass', () => {
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
    'that through other steps',
    `${fix}, { id: ok, needs: fix, approve: ok? }, { id: l, needs: ok, land: main }`,
    'fix',
  ],
  [
    'the work of a script on it',
    `${fix}, { id: lint, needs: fix, run: ls }, { id: l, needs: lint, land: main }`,
    'lint',
  ],
  [
    'the selected one of a fan-out',
    `{ id: best, agent: c, prompt: p, concurrency: 3, select: { gates: ls } }, { id: l, needs: best, land: main }`,
    'best',
  ],
  ['all of a fan-out if it says so', `${three}, { id: l, needs: many, land: main, from: many }`, 'many'],
])('a landing lands %s', (_, steps, expected) => {
  expect(bodyOf(load(`steps: [${steps}]`), 'l', 'land').from).toBe(expected);
});

test('whose work to land must be clear', () => {
  expect(
    problemsIn(`steps:
  - ${fix}
  - { id: docs, agent: coder, prompt: p }
  - { id: l, needs: [fix, docs], land: main }
`),
  ).toMatchInlineSnapshot(`
    "
    main.yaml:4:34: it must say whose work it lands: that of \`fix\` or \`docs\`
       4 |   - { id: l, needs: [fix, docs], land: main }
         |                                  ^^^^
      hint: write \`from: fix\`
    "
  `);
});

test.each<[string, readonly string[]]>([
  ['{ id: l, land: main }', ['[land] nothing that this step comes after leaves work to land']],
  [
    `${three}, { id: l, needs: many, land: main }`,
    ['[land] it must say whose work it lands: that of `many`'],
  ],
  [
    `${fix}, { id: docs, needs: fix, agent: c, prompt: p, concurrency: 2 }, { id: l, needs: docs, land: main }`,
    ['[land] it must say whose work it lands: that of `fix` or `docs`'],
  ],
  [`${fix}, { id: l, needs: fix, land: main, from: fxi }`, ['[fxi] there is no step `fxi`']],
  [
    `${fix}, { id: l, land: main, from: fix }`,
    ['[fix] step `l` does not come after step `fix`, so there may be nothing to land yet'],
  ],
  [
    `{ id: r, agent: c, prompt: p, workspace: readonly }, { id: l, needs: r, land: main, from: r }`,
    ['[r] step `r` leaves no work: its workspace is read-only'],
  ],
  [
    `{ id: s, run: ls }, { id: l, needs: s, land: main, from: s }`,
    ['[s] step `s` leaves no work: it has no workspace of its own'],
  ],
  [
    `${fix}, { id: l, needs: fix, land: main, concurrency: 2 }`,
    ['[concurrency] `concurrency` belongs to steps with `run`, `agent` or `uses`, and this one has `land`'],
  ],
  [`{ id: s, run: ls, from: x }`, ['[from] `from` belongs to steps with `land`, and this one has `run`']],
  [
    `{ id: s, run: ls, nedes: x }, { id: l, needs: s, land: main }`,
    ['[nedes] unknown key `nedes`', '[land] nothing that this step comes after leaves work to land'],
  ],
  [`{ id: fix, agent: coder }, { id: l, needs: fix, land: main }`, ['[coder] an agent needs a `prompt`']],
])('steps: [%s] is refused', (steps, expected) => {
  expect(shortProblemsIn(`steps: [${steps}]`)).toEqual(expected);
});

test('the example of the handbook loads', () => {
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
