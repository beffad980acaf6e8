import fc from 'fast-check';
import { parse, stringify } from 'smol-toml';
import { describe, expect, it } from 'vitest';
import type { Path, Range } from '../../workflow/yaml/source/yaml-source.ts';
import { findPositions } from './toml.ts';

type Visit = (path: Path, value: unknown) => void;

function walk(value: unknown, visit: Visit, path: Path = []): void {
  if (path.length > 0) visit(path, value);
  if (Array.isArray(value)) for (const [index, item] of value.entries()) walk(item, visit, [...path, index]);
  else if (typeof value === 'object' && value !== null && !(value instanceof Date))
    for (const [key, field] of Object.entries(value)) walk(field, visit, [...path, key]);
}

const isTable = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);

/** Expects that the text at the position of every key and value parses as that key or value. */
function expectRightPositions(text: string): void {
  const positions = findPositions(text);
  const cut = ({ start, end }: Range) => text.slice(start, end);
  walk(parse(text), (path, value) => {
    const last = path.at(-1);
    if (typeof last === 'string')
      expect(Object.keys(parse(`${cut(positions.keyAt(path))} = 0`)), path.join('.')).toEqual([last]);
    const written = cut(positions.valueAt(path));
    // Headers and dotted keys may spread these over the file; their contents are checked separately.
    const isSpread = Array.isArray(value) ? value.some(isTable) : isTable(value) && !written.startsWith('{');
    if (isSpread) return;
    expect(parse(`v = ${written}`)['v'], path.join('.')).toEqual(value);
  });
}

describe('the positions in a TOML file', () => {
  it.each([
    ['a multi-line string that ends with quotes', 'a = """x ""y"""""\nb = 1\n'],
    ['a multi-line literal that ends with quotes', "a = '''x ''y'''''\nb = 'z'\n"],
    ['a string that looks like TOML', 'a = """\n[b]\nc = 1 # "\n"""\nd = "[e] # \\" x = 2"\nf = \'\\\'\n'],
    ['comments with brackets and quotes', '# [x] "\na = [ # ] "\n  1, # , }\n  2 # {\n] # "\nb = 1'],
    [
      'quoted keys with dots, spaces and escapes',
      '"a.b" = 1\n"c d".\'e"f\' = 2\n"\\u0041\\"]" = 3\n["g ]"."h=i"]\nj = 1\n',
    ],
    [
      'dotted keys with spaces around the dots',
      'a . b\t.c = 1\na.d = 2\n[ e . f ]\ng.h = 3\n[ e.f.i ]\nj = 4\n',
    ],
    ['an empty key', '"" = 1\n[x.""]\n\'\' = 2\n'],
    [
      'tables in lists in tables',
      '[[a]]\nb = 1\n[[a.c]]\nd = 2\n[[a.c]]\nd = 3\n[[a]]\n[[a.c]]\nd = 4\n[a.e]\nf = 5\n',
    ],
    ['a table below its inner table', '[a.b]\nc = 1\n[a]\nd = 2\n'],
    [
      'inline tables over several lines',
      'a = [\n  { b = 1, c.d = "}" }, # {\n  { b = [ { e = "]" }, ], },\n]\n',
    ],
    [
      'dates, numbers and booleans',
      'a = 1979-05-27 07:32:00Z\nb = [07:32:00, 1979-05-27]\nc = [-inf,+1_000,0xDEAD]\nd = {e=true,f=1e3}\n',
    ],
    ['keys that look like values', '1979-05-27 = 1\ntrue = 2\n3.14 = 3\n-- = 4\n'],
    [
      'names of object methods',
      'constructor = 1\n__proto__ = { toString = 2 }\n[hasOwnProperty]\n__proto__ = 3\n',
    ],
    ['CRLF line endings', 'a = 1\r\n# b\r\n[c]\r\nd = """x\r\ny"""\r\ne = [\r\n1,\r\n2]\r\n'],
    ['a byte order mark', '\uFEFFa = 1\n[b]\nc = 2\n'],
    ['no newline at the end', '[a]\nb = """\n"""'],
    ['wide characters', '"ключ" = "👍"\n"漢" = { b = "é" }\n'],
    ['an escaped backslash before the end', 'a = "\\\\"\nb = """\\\\"""\nc = 3\n'],
    ['an empty file', ''],
    ['only a comment', '# a = 1'],
  ])('are right with %s', (_, text) => {
    expectRightPositions(text);
  });

  const nasty = fc.oneof(
    fc.string(),
    fc.constantFrom('a.b', '"', "'", '#', '[x]', '"""', "'''", '\\', '=', '__proto__', ' '),
  );
  const { table } = fc.letrec(tie => ({
    value: fc.oneof(
      { depthSize: 'small' },
      nasty,
      fc.integer(),
      fc.boolean(),
      fc.array(tie('value'), { maxLength: 3 }),
      tie('table'),
      fc.array(tie('table'), { maxLength: 3 }),
    ),
    table: fc.dictionary(nasty, tie('value'), { maxKeys: 4 }),
  }));

  it('are right in any value written as TOML', () => {
    fc.assert(
      fc.property(table, value => expectRightPositions(stringify(value))),
      { numRuns: 500 },
    );
  });

  it('point at the header of a table, and at the parent of a missing key', () => {
    const text = '[[multi.steps]]\nname = "a"\n[[multi.steps]]\nname = "b"\n';
    const positions = findPositions(text);
    expect(positions.valueAt(['multi', 'steps', 1])).toEqual({ start: 27, end: 42 });
    expect(positions.keyAt(['multi', 'steps', 1])).toEqual({ start: 35, end: 40 });
    expect(positions.valueAt(['multi', 'steps', 1, 'command', 'x'])).toEqual({ start: 27, end: 42 });
    expect(positions.valueAt(['files'])).toEqual({ start: 0, end: 1 });
  });

  it('are right in any valid mixture of lines', () => {
    const keys = ['a', 'b.c', '"d.e"', "a . 'b'", '"\\u0041"'];
    const values = [
      '1',
      '"]"',
      "'''\n[a]'''",
      '[ { a = 1 }, # ]\n]',
      '{ b.c = "}", d = [1] }',
      '1979-05-27 07:32:00',
    ];
    const line = fc.oneof(
      fc
        .tuple(fc.constantFrom(...keys), fc.constantFrom(...values))
        .map(([key, value]) => `${key} = ${value}`),
      fc.constantFrom(...keys).map(key => `[${key}]`),
      fc.constantFrom(...keys).map(key => `[[ ${key} ]] # [x]`),
    );
    let accepted = 0;
    const mixture = fc.array(line, { maxLength: 6 }).map(lines => lines.join('\n'));
    fc.assert(
      fc.property(mixture, text => {
        if (!isToml(text)) return;
        accepted++;
        expectRightPositions(text);
      }),
      { numRuns: 1000 },
    );
    expect(accepted).toBeGreaterThan(100);
  });
});

function isToml(text: string): boolean {
  try {
    parse(text);
    return true;
  } catch {
    return false;
  }
}
