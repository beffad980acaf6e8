import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DefinitionError } from '../problems.ts';
import { loadWorkflow } from './load.ts';
import { bodyOf, load, problemsIn, scopeOf } from './test-support.ts';

describe('any text', () => {
  const piece = fc.constantFrom(
    'steps:',
    'inputs:',
    'outputs:',
    'env:',
    'id',
    'run',
    'uses',
    'approve',
    'needs',
    'if',
    'with',
    'retry',
    'timeout',
    'output',
    'agent',
    'prompt',
    'land',
    'strategy: { matrix: ',
    'concurrency: 2',
    'select: ',
    'workspace',
    'matrix.x',
    ': ',
    '- ',
    '\n',
    '\n  ',
    '\n    ',
    '[',
    ']',
    '{',
    '}',
    ', ',
    '|',
    '>-',
    '"',
    "'",
    '&a ',
    '*a',
    '!x ',
    '# ',
    '---\n',
    '\t',
    '? ',
    '${{ ',
    ' }}',
    'inputs.x',
    'steps.a',
    'main',
    'a',
    '1',
    'true',
    'null',
    '.inf',
    '<<EOF',
    '$((',
    '__proto__',
    '\\',
    '\u0000',
    'é',
  );
  const attempt = (text: string): unknown => {
    try {
      return loadWorkflow({
        file: 'f.yaml',
        text,
        resolve: () => ({ file: 'g.yaml', text }),
        readPrompt: () => ({ displayFile: 'p.md', text }),
        known: () => ['a'],
      });
    } catch (error) {
      return error;
    }
  };
  const isLoadedOrRejected = (result: unknown): boolean =>
    result instanceof DefinitionError ? result.problems.length > 0 : !(result instanceof Error);

  test('either loads or is rejected with problems that all have a position', () => {
    const text = fc.oneof(
      fc.string(),
      fc.array(piece, { maxLength: 40 }).map(pieces => pieces.join('')),
    );
    fc.assert(
      fc.property(text, given => {
        const result = attempt(given);
        expect(result).toSatisfy(isLoadedOrRejected);
        if (result instanceof DefinitionError)
          for (const problem of result.problems) expect(problem.position).toBeDefined();
      }),
      { numRuns: 3000 },
    );
  });

  test('with any value at any key either loads or is rejected', () => {
    const keys = [
      'id',
      'run',
      'uses',
      'approve',
      'needs',
      'if',
      'env',
      'with',
      'retry',
      'timeout',
      'timeout-minutes',
      'output',
      'shell',
      'agent',
      'prompt',
      'permissions',
      'max_turns',
      'on_fail',
      'workspace',
      'setup',
      'checks',
      'teardown',
      'artifacts',
      'concurrency',
      'strategy',
      'select',
      'budget',
      'land',
      'from',
      'verify',
      'x',
    ];
    const value = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom<unknown>('a', '${{ steps.a }}', '${{', 'ls', '1s', 3, ['a'], { x: '${{ inputs.y }}' }),
      fc.constantFrom<unknown>(
        { matrix: { x: [1, '${{ matrix.x }}'], include: [{ y: 1 }] } },
        { matrix: '${{ inputs.x }}' },
        { matrix: { __proto__: null, x: 'a', exclude: [1] } },
        { gates: 'ls', judge: 'a' },
        { base: 'a', branch: '${{ matrix.x }}', readonly: true },
        { rework: 1 },
        { file: 'p.md' },
        'rework',
        'none',
      ),
    );
    const step = fc.dictionary(fc.constantFrom(...keys), value).map(given => ({ id: 'a', ...given }));
    const top = fc.dictionary(
      fc.constantFrom('name', 'inputs', 'env', 'outputs', 'runtime', 'on_failure', '__proto__'),
      value,
    );
    fc.assert(
      fc.property(top, fc.array(step, { maxLength: 3 }), (given, steps) => {
        expect(attempt(JSON.stringify({ ...given, steps }))).toSatisfy(isLoadedOrRejected);
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    ['deep lists', '['.repeat(3000)],
    ['deep lists that close', `steps: ${'['.repeat(3000)}${']'.repeat(3000)}`],
    ['deep maps', 'a: {'.repeat(20_000)],
    ['deep blocks', `steps:\n${'- '.repeat(3000)}a`],
    ['growing indentation', Array.from({ length: 300 }, (_, n) => `${' '.repeat(n)}a:\n`).join('')],
  ])('with %s is rejected before it exhausts the stack', (_, text) => {
    expect(attempt(text)).toMatchObject({ message: expect.stringContaining('nested too deeply') });
  });

  test.each([
    [
      'aliases that multiply',
      `outputs:\n${Array.from({ length: 30 }, (_, n) => `  a${n}: &a${n} [${n === 0 ? 'x' : `*a${n - 1}, *a${n - 1}`}]`).join('\n')}\n`,
    ],
    ['a byte order mark', '\ufeffsteps: [{ id: a, run: ls }]'],
    ['carriage returns', 'steps:\r\n  - id: a\r\n    run: |\r\n      echo ${{ nope }}\r\n'],
  ])('with %s either loads or is rejected', (_, text) => {
    expect(attempt(text)).toSatisfy(isLoadedOrRejected);
  });
});

describe('a key that objects already have', () => {
  test.each([
    'inputs: { __proto__: { default: x } }',
    'env: { __proto__: x }',
    'outputs: { a: { "__proto__": x } }',
    'steps: [{ id: a, run: ls, strategy: { matrix: { __proto__: [1] } } }]',
    '__proto__: 1',
  ])('is refused in `%s`', text => {
    expect(problemsIn(`${text}\n${text.startsWith('steps') ? '' : 'steps: [{ id: a, run: ls }]'}`)).toContain(
      '`__proto__` cannot be a key',
    );
  });

  test.each(['constructor', 'toString', 'hasOwnProperty'])('keeps its value if it is `%s`', name => {
    const model = load(
      `inputs: { ${name}: { default: x } }\nsteps: [{ id: a, agent: b, prompt: "\${{ inputs.${name} }}" }]`,
    );
    const inputs = model.input.parse({});
    expect(inputs).toEqual({ [name]: 'x' });
    expect(bodyOf(model, 'a', 'agent').prompt(scopeOf({ inputs }))).toBe('x');
    expect(model.input.parse({ [name]: 'y' })).toEqual({ [name]: 'y' });
  });
});

describe('a file of a megabyte', () => {
  const lines = (count: number, line: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => line(index)).join('\n');

  test.each([
    ['keys', lines(60_000, index => `a${index}: ${index}`)],
    ['invalid values', `env:\n${lines(50_000, index => `  "a-${index}": 1`)}`],
  ])(
    'with tens of thousands of %s is rejected within seconds',
    (_, text) => {
      expect(problemsIn(text)).toContain('main.yaml:');
    },
    30_000,
  );

  test('reports a key that is written twice, whatever its quotes are', () => {
    expect(problemsIn('steps: []\nenv: { a: 1, "a": 2, 1: x, "1": y }')).toMatch(
      /duplicate key `a`[\s\S]*duplicate key `1`/,
    );
  });
});
