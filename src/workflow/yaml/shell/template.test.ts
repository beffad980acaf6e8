import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EvaluationContext } from '../../expression/evaluate.ts';
import { environmentText, parseShellTemplate } from './template.ts';

const shells = ['bash', 'sh'] as const;
type Shell = (typeof shells)[number];

const given = (value: string): EvaluationContext => ({
  status: 'success',
  read: context => (context === 'inputs' ? { v: value } : {}),
});

/** Returns what a script prints when every `${{ inputs.v }}` in it is `value`. */
function print(text: string, value: string, shell: Shell): string {
  const { script, values, faults } = parseShellTemplate(text, shell);
  expect(faults).toEqual([]);
  const env = Object.fromEntries(
    values.map(({ name, expression }) => [name, environmentText(expression, given(value))]),
  );
  const { stdout, stderr } = spawnSync(shell, ['-c', script], {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  expect(stderr).toBe('');
  return stdout;
}

const nasty = fc.constantFrom(
  "'",
  '"',
  '$',
  '`',
  '\\',
  '\n',
  ' ',
  '\t',
  '*',
  '~',
  '!',
  '#',
  '{',
  '}',
  ';',
  '&',
  '|',
  '-n',
  '$(echo pwned)',
  '`echo pwned`',
  '${HOME}',
  'EOF',
  "'\"'",
  '\\\\',
  'é',
  '日本',
  '😀',
  '\u0081',
);
const anyValue = fc
  .array(fc.oneof(nasty, fc.string({ unit: 'grapheme', maxLength: 4 })), { maxLength: 8 })
  .map(parts => parts.join('').replaceAll('\0', ''));

/** Scripts that print the value once, each in a different quoting context. */
const contexts: Readonly<Record<string, string>> = {
  bare: 'printf %s ${{ inputs.v }}',
  'bare, as part of a word': 'x=${{ inputs.v }}; printf %s "$x"',
  'double quotes': 'printf %s "${{ inputs.v }}"',
  'single quotes': "printf %s '${{ inputs.v }}'",
  'after other quotes': `printf %s%s "it's" '"' > /dev/null; printf %s '\${{ inputs.v }}'`,
  'after escaped quotes': `: \\" \\' "\\""; printf %s "\${{ inputs.v }}"`,
  'after an apostrophe in a comment': "# don't\nprintf %s ${{ inputs.v }}",
  'after a `#` inside a word': "printf %s x#' ' >/dev/null; printf %s '${{ inputs.v }}'",
  'after a comment that ends a line': `: one # it's "two\nprintf %s "\${{ inputs.v }}"`,
  'a default with quotes, in double quotes': `: "\${x:-it's '}"; printf %s '\${{ inputs.v }}'`,
  'a pattern with a quoted brace': `y=a; : "\${y#'}'}"; printf %s '\${{ inputs.v }}'`,
  'a length': `y=a; : \${#y}; printf %s '\${{ inputs.v }}'`,
  'arithmetic before it': "n=$(( (1 << 2) + 1 )); printf %s '${{ inputs.v }}'",
  'a subshell in a subshell': "((printf %s '${{ inputs.v }}'); :)",
  'a function': 'f() { printf %s "$1"; }\nf ${{ inputs.v }}',
  'a case': 'case x in (y) ;; x) printf %s ${{ inputs.v }} ;; esac',
  'two here-documents on a line':
    "cat <<A >/dev/null; cat <<'B' >/dev/null\n'\nA\n\"\nB\nprintf %s '${{ inputs.v }}'",
};
/** A substitution drops newlines at the end, so these print a `.` after the value. */
const endingInADot: Readonly<Record<string, string>> = {
  'a substitution': 'printf %s "$(printf %s. ${{ inputs.v }})"',
  'double quotes in a substitution in double quotes': 'printf %s "$(printf %s. "${{ inputs.v }}")"',
  'single quotes in a substitution in double quotes': `printf %s "$(printf %s. '\${{ inputs.v }}')"`,
  'backticks in double quotes': 'printf %s "`printf %s. ${{ inputs.v }}`"',
  'double quotes in backticks': 'x=`printf %s. "${{ inputs.v }}"`; printf %s "$x"',
  'a case in a substitution': 'printf %s "$(case x in x) printf %s. \'${{ inputs.v }}\' ;; esac)"',
  'a substitution in a here-document':
    'x=$(cat <<EOF\n$(printf %s. \'${{ inputs.v }}\')\nEOF\n); printf %s "$x"',
  'a here-document': 'x=$(cat <<EOF\n"${{ inputs.v }}".\nEOF\n); x=${x#?}; printf %s "${x%??}."',
  'an indented here-document': 'x=$(cat <<-EOF\n\t${{ inputs.v }}.\n\tEOF\n); printf %s "$x"',
};

const bashOnly: Readonly<Record<string, string>> = {
  'ANSI quotes': "printf %s $'${{ inputs.v }}'",
  'after an escaped quote in ANSI quotes': "printf %s $'\\'' >/dev/null; printf %s \"${{ inputs.v }}\"",
  'a here-string': 'IFS= read -r -d "" x <<<${{ inputs.v }}.; printf %s "${x%??}"',
  'an array': 'a=(${{ inputs.v }} "b"); printf %s "${a[0]}"',
  'a conditional': "[[ ${{ inputs.v }} == '${{ inputs.v }}' ]] && printf %s ${{ inputs.v }}",
  'a process substitution': 'cat <(printf %s ${{ inputs.v }})',
  'an arithmetic command before it': "(( 1 << 2 )); printf %s '${{ inputs.v }}'",
};

const shOnly: Readonly<Record<string, string>> = {
  'a default with an apostrophe, in double quotes': `: "\${x:-it's}"; printf %s '\${{ inputs.v }}'`,
};

describe.each(shells)('a script for %s', shell => {
  const cases = [
    ...Object.entries(contexts).map(([name, script]) => ({ name, script, ending: '' })),
    ...Object.entries(endingInADot).map(([name, script]) => ({ name, script, ending: '.' })),
    ...Object.entries(shell === 'bash' ? bashOnly : shOnly).map(([name, script]) => ({
      name,
      script,
      ending: '',
    })),
  ];
  test.each(cases)('receives values unchanged: $name', ({ script, ending }) => {
    fc.assert(
      fc.property(anyValue, value => {
        expect(print(script, value, shell)).toBe(value + ending);
      }),
      {
        numRuns: 25,
        examples: [['-n'], ["'; echo pwned; '"], ['"; echo pwned; "'], ['$(echo pwned)'], ['\n\n'], ['']],
      },
    );
  });

  test('keeps a dollar sign right before a value', () => {
    expect(print('printf %s $${{ inputs.v }}', '5', shell)).toBe('$5');
    expect(print('printf %s "$${{ inputs.v }}"', '5', shell)).toBe('$5');
    expect(print("printf %s '$${{ inputs.v }}'", '5', shell)).toBe('$5');
    expect(print('cat <<EOF\n$${{ inputs.v }}\nEOF', '5', shell)).toBe('$5\n');
  });

  test('keeps a `${{ }}` after a backslash as text', () => {
    expect(print('printf %s "\\${{ inputs.v }}"', '5', shell)).toBe('${{ inputs.v }}');
  });
});

test('a comment is kept unchanged, even if it contains an expression', () => {
  const script = 'echo a # ${{ nonsense(\n# ${{ inputs.v }}\necho b';
  expect(parseShellTemplate(script, 'bash')).toEqual({ script, values: [], faults: [] });
});

test('every value has its own variable', () => {
  const { script, values } = parseShellTemplate('a ${{ inputs.v }} "${{ inputs.w }}"', 'bash');
  expect(script).toBe('a "${REPRISE_VALUE_1}" "${REPRISE_VALUE_2}"');
  expect(values.map(({ name }) => name)).toEqual(['REPRISE_VALUE_1', 'REPRISE_VALUE_2']);
});

const refused: readonly (readonly [string, RegExp])[] = [
  ["cat <<'EOF'\n${{ inputs.v }}\nEOF", /quoted delimiter/],
  ['cat <<\\EOF\n${{ inputs.v }}\nEOF', /quoted delimiter/],
  ['cat << ${{ inputs.v }}\nx\n', /delimiter of a here-document/],
  ['echo $(( ${{ inputs.v }} + 1 ))', /shell arithmetic/],
  ['(( ${{ inputs.v }} > 1 ))', /shell arithmetic/],
  ['echo $[ ${{ inputs.v }} ]', /shell arithmetic/],
  ['[[ "${{ inputs.v }}" -gt 1 ]]', /shell arithmetic/],
  ['[[ 1 -eq ${{ inputs.v }} ]]', /shell arithmetic/],
  ['[[ ( ${{ inputs.v }} -lt 3 ) ]]', /shell arithmetic/],
  ['a["${{ inputs.v }}"]=1', /shell arithmetic/],
  ['echo "${x:-${{ inputs.v }}}"', /inside `\$/],
  ['echo ${x:-"${{ inputs.v }}"}', /inside `\$/],
  ['echo `echo \\\\ ${{ inputs.v }}`', /backticks/],
  ['echo ${{ inputs.v', /no closing/],
  ['echo ${{ inputs. }}', /name of a property/],
];

test.each(refused)('the script %j is rejected', (script, message) => {
  expect(parseShellTemplate(script, 'bash').faults.map(fault => fault.message)).toEqual([
    expect.stringMatching(message),
  ]);
});

test('a value is allowed after an arithmetic conditional', () => {
  expect(parseShellTemplate('[[ 1 -eq 1 ]] && echo ${{ inputs.v }}', 'bash').faults).toEqual([]);
});

test('a value with a NUL is rejected, because no variable can hold it', () => {
  const [value] = parseShellTemplate('echo ${{ inputs.v }}', 'sh').values;
  expect(() => value && environmentText(value.expression, given('a\0b'))).toThrowError(
    expect.objectContaining({ code: 'EXPRESSION_FAILED' }),
  );
});

test('scanning never throws for any text', () => {
  const piece = fc.constantFrom(
    '${{',
    '}}',
    "'",
    '"',
    '`',
    '$(',
    '$((',
    '((',
    '))',
    ')',
    '${',
    '}',
    '\\',
    '<<EOF',
    "<<'A'",
    '\nEOF\n',
    'case ',
    'esac',
    '[[ ',
    ' ]]',
    '#',
    ' ',
    '\n',
    'x',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), fc.constantFrom(...shells), (pieces, shell) => {
      parseShellTemplate(pieces.join(''), shell);
    }),
  );
});
