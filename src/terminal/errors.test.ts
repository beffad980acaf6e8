import { stripVTControlCharacters } from 'node:util';
import { expect, it } from 'vitest';
import { RepriseError } from '../core/errors.ts';
import { DefinitionError } from '../workflow/problems.ts';
import { formatError } from './errors.ts';

const plain = (error: unknown) => formatError(error, { color: false });

it('shows the code, the message, the position and the hint', () => {
  const error = new RepriseError('RUN_OWNED', 'run k7x2 is being run by process 7', {
    hint: 'watch it: reprise show k7x2',
    position: { file: 'reprise.yaml', line: 3, column: 5 },
    cause: new Error('not shown'),
  });
  expect(plain(error)).toMatchInlineSnapshot(`
    "error[RUN_OWNED]: run k7x2 is being run by process 7
      at reprise.yaml:3:5
      hint: watch it: reprise show k7x2
    "
  `);
});

it('does not repeat a position that the message names', () => {
  const position = { file: 'reprise.yaml', line: 1, column: 1 };
  expect(
    plain(new RepriseError('CONFIG_INVALID', 'reprise.yaml:1:1: unknown key', { position })),
  ).toMatchInlineSnapshot(`
    "error[CONFIG_INVALID]: reprise.yaml:1:1: unknown key
    "
  `);
});

it('lists every problem of a definition with its position', () => {
  const error = new DefinitionError([
    {
      message: 'there is no step `biuld`',
      hint: 'did you mean `build`?',
      position: { file: 'order.yaml', line: 4, column: 13 },
      excerpt: '   4 |     needs: [biuld]\n     |             ^^^^^',
    },
    { message: 'two steps have the id `a`' },
  ]);
  expect(plain(error)).toMatchInlineSnapshot(`
    "error[DEFINITION_INVALID]: there is no step \`biuld\`
      at order.yaml:4:13
       4 |     needs: [biuld]
         |             ^^^^^
      hint: did you mean \`build\`?

    error[DEFINITION_INVALID]: two steps have the id \`a\`

    2 problems
    "
  `);
});

it('shows the same text with colors', () => {
  const error = new RepriseError('USAGE', 'no such option', { hint: 'see --help' });
  const coloured = formatError(error, { color: true });
  expect(coloured).toContain('\u001B[31merror[USAGE]\u001B[39m');
  expect(stripVTControlCharacters(coloured)).toBe(plain(error));
});

it('reports any other error as a bug, with the stacks of the error and its causes', () => {
  const error = new TypeError('x is not a function', { cause: new RangeError('too deep') });
  const text = plain(error).replace(/( +at .*\n)+/g, '    at ...\n');
  expect(text).toMatchInlineSnapshot(`
    "error[INTERNAL]: x is not a function
      this is a bug in Reprise: please report it with the lines below
    TypeError: x is not a function
        at ...
    caused by RangeError: too deep
        at ...
    "
  `);
  const internal = new RepriseError('INTERNAL', 'no step is ready', {
    hint: 'report it with the output of `reprise history`',
  });
  expect(plain(internal).replace(/( +at .*\n)+/g, '    at ...\n')).toMatchInlineSnapshot(`
    "error[INTERNAL]: no step is ready
      hint: report it with the output of \`reprise history\`
      this is a bug in Reprise: please report it with the lines below
    RepriseError: no step is ready
        at ...
    "
  `);
});

it('describes a thrown value that is not an error', () => {
  expect(plain({ odd: true })).toMatchInlineSnapshot(`
    "error[INTERNAL]: threw {"odd":true}
      this is a bug in Reprise: please report it with the lines below
    "
  `);
});

it('removes control characters', () => {
  const evil = '\u001B[2Jgone\u0007';
  const text = plain(
    new RepriseError('USAGE', evil, { hint: evil, position: { file: evil, line: 1, column: 1 } }),
  );
  expect(text.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
});
