import { expect, test } from 'vitest';
import { DefinitionError } from '../problems.ts';
import { loadWorkflow } from './load.ts';

interface Mistake {
  readonly name: string;
  readonly text: string;
  /** Other files by reference. */
  readonly others?: Readonly<Record<string, string>>;
}

const steps = (...lines: readonly string[]): string => `steps:\n${lines.map(line => `  ${line}\n`).join('')}`;

const mistakes: readonly Mistake[] = [
  { name: 'an unclosed list', text: 'name: x\nsteps: [ {id: a, run: "true" }\nenv: {}\n' },
  { name: 'an unclosed quote', text: `name: "unclosed\n${steps('- { id: a, run: ls }')}` },
  { name: 'an unclosed quote in a list', text: "steps:\n  - id: a\n    needs: ['b, c]\n" },
  {
    name: 'a mistake after wide characters',
    text: steps('- { id: 漢字, run: ls }', '- { run: 👍, retyr: 1 }'),
  },
  { name: 'a colon in plain text', text: steps('- id: a', '  run: echo one: two') },
  { name: 'an unquoted expression in braces', text: steps('- { id: a, run: echo "${{ inputs.x }}" }') },
  { name: 'a tab as indentation', text: 'steps:\n  - id: a\n\trun: make\n' },
  { name: 'a duplicate key', text: steps('- id: a', '  run: one', '  run: two') },
  { name: 'two documents', text: `${steps('- { id: a, run: ls }')}---\nname: b\n` },
  { name: 'an alias without an anchor', text: steps('- { id: a, run: *script }') },
  { name: 'an alias that refers to itself', text: 'env: &e\n  A: *e\nsteps: [{ id: a, run: ls }]\n' },
  { name: 'a tag', text: steps('- { id: a, run: !secret x }') },
  { name: 'an empty file', text: '' },
  { name: 'a list at the top level', text: '- id: a\n  run: ls\n' },
  { name: 'missing steps', text: 'name: x\ndescription: nothing to do\n' },
  { name: 'steps without a list', text: 'name: x\nsteps:\n' },
  { name: 'an empty list of steps', text: 'name: x\nsteps: []\n' },
  { name: 'an unknown key at the top level', text: `descripton: typo\n${steps('- { id: a, run: ls }')}` },
  { name: 'GitHub keys at the top level', text: 'on: push\njobs:\n  build:\n    runs-on: ubuntu-latest\n' },
  { name: 'an unknown key of a step', text: steps('- id: a', '  run: ls', '  retyr: 3') },
  {
    name: 'keys of other tools in a step',
    text: steps(
      '- id: a',
      '  command: ls',
      '  depends_on: [b]',
      '- id: b',
      '  run: ls',
      '  continue-on-error: true',
      '  runs-on: x',
    ),
  },
  { name: 'a NUL in a script', text: steps('- { id: a, run: "echo \\0 hi" }') },
  {
    name: 'a branch below the prefix of Reprise',
    text: steps('- { id: a, run: ls, workspace: { branch: reprise/w } }'),
  },
  { name: 'a step that is text', text: steps('- npm test') },
  { name: 'a step that does nothing', text: steps('- id: a', '  name: nothing') },
  { name: 'two kinds in a step', text: steps('- id: a', '  run: ls', '  approve: Sure?') },
  {
    name: 'a key of a different kind of step',
    text: steps('- { id: a, approve: "Sure?", shell: bash }', '- { id: b, run: ls, with: { x: 1 } }'),
  },
  { name: 'a missing id', text: steps('- name: first', '  run: ls') },
  {
    name: 'a duplicate id',
    text: steps('- { id: a, run: ls }', '- { id: b, run: ls }', '- { id: a, run: ls }'),
  },
  { name: 'an invalid id', text: steps('- id: 1st step', '  run: ls') },
  {
    name: 'an unknown need',
    text: steps('- { id: build, run: ls }', '- { id: test, needs: [biuld], run: ls }'),
  },
  { name: 'a step that needs itself', text: steps('- id: a', '  needs: a', '  run: ls') },
  {
    name: 'a cycle',
    text: steps(
      '- { id: a, needs: [c], run: ls }',
      '- { id: b, needs: [a], run: ls }',
      '- { id: c, needs: [x, b], run: ls }',
      '- { id: x, run: ls }',
    ),
  },
  {
    name: 'a step that is read but not needed',
    text: steps(
      '- { id: a, run: ls }',
      '- { id: b, run: ls }',
      '- id: c',
      '  needs: a',
      '  run: echo ${{ steps.b.outputs.x }}',
    ),
  },
  {
    name: 'an expression that reads an unknown step',
    text: steps(
      '- { id: plan, run: ls }',
      '- { id: b, needs: [plan], run: "echo ${{ steps.paln.outputs.x }}" }',
    ),
  },
  {
    name: 'an unknown field of a step',
    text: steps('- { id: a, run: ls }', "- { id: b, needs: [a], if: steps.a.output.x == 'y', run: ls }"),
  },
  { name: 'a step that reads itself', text: steps('- { id: a, run: "echo ${{ steps.a.outputs.x }}" }') },
  {
    name: 'an undeclared input',
    text: `inputs: { issue: {} }\n${steps('- id: a', '  run: |', '    set -e', '    echo "number ${{ inputs.isue }}"')}`,
  },
  {
    name: 'an undeclared variable',
    text: `env: { A: "1", B: "${'${{ env.A }}'}" }\n${steps('- id: a', '  env: { C: "${{ env.A }}" }', '  run: echo ${{ env.HOME }}')}`,
  },
  {
    name: 'a step in the shared environment',
    text: `env: { A: "${'${{ steps.a.outputs.x }}'}" }\n${steps('- { id: a, run: ls }')}`,
  },
  {
    name: 'an expression that does not parse',
    text: steps('- id: a', '  if: >-', "    inputs.a == 'x'", '    && (inputs.b', '  run: ls'),
  },
  { name: 'double quotes in an expression', text: steps(`- { id: a, if: 'inputs.a == "x"', run: ls }`) },
  { name: 'an unclosed expression', text: steps('- id: a', "  run: 'echo ${{ inputs.a'") },
  { name: 'an expression in escaped text', text: steps('- id: a', '  run: "echo\\t\\u0041 ${{ nothing }}"') },
  { name: 'an unknown function', text: steps('- { id: a, if: "startWith(inputs, 1)", run: ls }') },
  {
    name: 'a wrong number of arguments',
    text: steps('- { id: a, if: "always(1) || contains(\'a\')", run: ls }'),
  },
  { name: 'an unknown context', text: steps('- { id: a, run: "echo ${{ github.ref }} ${{ input.x }}" }') },
  {
    name: "GitHub's `needs` context",
    text: steps('- { id: a, run: ls }', '- { id: b, needs: [a], run: "echo ${{ needs.a.outputs.x }}" }'),
  },
  {
    name: 'a condition that is always true',
    text: steps('- { id: a, if: "${{ env.X }} == \'x\'", run: ls }'),
  },
  { name: 'an unknown policy', text: `on_failure: fail_fast\n${steps('- { id: a, run: ls }')}` },
  {
    name: 'an invalid retry',
    text: steps(
      '- { id: a, run: ls, retry: 0 }',
      '- { id: b, run: ls, retry: often }',
      '- id: c',
      '  run: ls',
      '  retry: { attempts: 2, backof: 1s }',
    ),
  },
  {
    name: 'an invalid backoff',
    text: steps(
      '- { id: a, run: ls, retry: { attempts: 2, backoff: 10 } }',
      '- { id: b, run: ls, retry: { attempts: 2, backoff: { initial: 1 second } } }',
    ),
  },
  { name: 'a retry without attempts', text: steps('- id: a', '  run: ls', '  retry:', '    backoff: 1s') },
  { name: 'negative minutes', text: steps('- { id: a, run: ls, timeout-minutes: -5 }') },
  {
    name: 'an invalid duration',
    text: steps(
      '- { id: a, run: ls, timeout: 5 minutes }',
      '- { id: b, run: ls, timeout: 30 }',
      '- { id: c, run: ls, timeout: 0s }',
    ),
  },
  {
    name: 'two timeouts for one step',
    text: steps('- { id: a, run: ls, timeout: { step: 1m }, timeout-minutes: 1 }'),
  },
  { name: 'a number and a boolean instead of text', text: `name: 5\n${steps('- { id: a, run: true }')}` },
  {
    name: 'a missing file',
    text: steps('- { id: a, uses: ./chidl.yaml }', '- { id: b, uses: deplyo }'),
    others: { deploy: '' },
  },
  { name: 'a GitHub action', text: steps('- { id: a, uses: actions/checkout@v4 }') },
  { name: 'a workflow that uses itself', text: steps('- { id: a, uses: main }'), others: { main: '' } },
  {
    name: 'a workflow that uses itself through another',
    text: steps('- { id: a, uses: child }'),
    others: { child: 'name: child\nsteps:\n  - id: up\n    uses: main\n', main: '' },
  },
  {
    name: 'problems in the file of a child workflow',
    text: steps('- { id: a, uses: child }', '- { id: b, uses: child, nedes: [a] }'),
    others: { child: 'steps:\n  - id: x\n    run: echo ${{ inputs.y }}\n' },
  },
  {
    name: 'unknown, missing and invalid inputs of a child workflow',
    text: steps(
      '- { id: a, uses: child, with: { isue: 7 } }',
      '- { id: b, uses: child, with: { issue: 7, deep: "yes" } }',
    ),
    others: {
      child: 'inputs: { issue: { required: true }, deep: { type: boolean } }\nsteps: [{ id: x, run: ls }]\n',
    },
  },
  {
    name: 'a default of the wrong type',
    text: `inputs:\n  n: { type: number, default: many }\n  s: { default: 7 }\n${steps('- { id: a, run: ls }')}`,
  },
  {
    name: 'contradictory choices',
    text: `inputs:\n  a: { type: choice }\n  b: { options: [x] }\n  c: { type: choice, options: [x, y], default: z }\n  d: { type: choice, options: [] }\n  e: { type: txt }\n${steps('- { id: a, run: ls }')}`,
  },
  { name: 'empty choices', text: steps('- id: a', '  approve: { message: "Sure?", choices: [] }') },
  {
    name: 'a duplicate choice',
    text: steps('- id: a', '  approve: { message: "Sure?", choices: [yes, no, yes] }'),
  },
  {
    name: 'an invalid variable name',
    text: `env: { A-B: x, REPRISE_VALUE_1: y, C: [1], D: "${'${{ inputs.x }}'}" }\n${steps('- { id: a, run: ls }')}`,
  },
  {
    name: 'an unsupported output schema',
    text: steps('- { id: a, run: ls, output: { type: objekt } }'),
  },
  {
    name: 'a value in a quoted here-document',
    text: `inputs: { x: {} }\n${steps('- id: a', '  run: |', "    cat <<'EOF'", '    ${{ inputs.x }}', '    EOF')}`,
  },
  {
    name: 'a value in shell arithmetic',
    text: `inputs: { x: {} }\n${steps('- { id: a, run: "echo $(( ${{ inputs.x }} + 1 ))" }')}`,
  },
  {
    name: 'invalid limits',
    text: `runtime: { max_concurrent_workers: 1.5, budget: { minutes: 0, hours: 1 } }\n${steps('- { id: a, run: ls }')}`,
  },
  {
    name: 'many problems in one file',
    text: `nam: x\non_failure: stop\n${steps('- id: a b', '  run: echo ${{ inputs.x }}', '- id: b', '  needs: [c]', '  tiemout: 1s', '  run: echo ${{ nope }}', '- id: d', '  uses: gone')}outputs:\n  x: \${{ steps.zzz.outputs }}\n`,
  },
  {
    name: 'a very long line',
    text: steps(
      `- { id: a, name: ${'long '.repeat(40)}, run: ls, unknown: 1, description: ${'x'.repeat(200)} }`,
    ),
  },
];

function messageFor({ text, others = {} }: Mistake): string {
  const file = '/project/main.yaml';
  const resolve = (reference: string) => {
    if (!Object.hasOwn(others, reference)) return undefined;
    if (reference === 'main') return { file, displayFile: 'main.yaml', text };
    return {
      file: `/project/${reference}.yaml`,
      displayFile: `${reference}.yaml`,
      text: others[reference] ?? '',
    };
  };
  try {
    loadWorkflow({ file, displayFile: 'main.yaml', text, resolve, known: () => Object.keys(others) });
  } catch (error) {
    if (error instanceof DefinitionError) return `\n${error.message}\n`;
    throw error;
  }
  return 'the workflow is valid';
}

for (const mistake of mistakes) {
  test(`loading reports ${mistake.name}`, () => {
    expect(messageFor(mistake)).toMatchSnapshot();
  });
}
