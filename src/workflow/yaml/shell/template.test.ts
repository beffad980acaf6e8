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

/** Positions in which the shell, or a program that it starts, would run or evaluate a value. */
const evaluated = [
  'let n=${{ inputs.v }}',
  'let "n = ${{ inputs.v }} + 1"',
  'declare ${{ inputs.v }}',
  'declare n=${{ inputs.v }}',
  'declare -i n; n=${{ inputs.v }}',
  'declare -i n=${{ inputs.v }}',
  'declare -ri n; export n=${{ inputs.v }}',
  'declare -n r; r=${{ inputs.v }}; echo $r',
  'declare -i n; for n in ${{ inputs.v }}; do :; done',
  'declare -i n; read n <<< ${{ inputs.v }}',
  'declare -a a="${{ inputs.v }}"',
  'typeset "${{ inputs.v }}"',
  'f() { local ${{ inputs.v }}; }; f',
  'RANDOM=${{ inputs.v }}',
  'for RANDOM in ${{ inputs.v }}; do :; done',
  'export ${{ inputs.v }}',
  'readonly -a a="${{ inputs.v }}"',
  'test -v ${{ inputs.v }}',
  '[ -v ${{ inputs.v }} ]',
  '[ -n x -a -v "${{ inputs.v }}" ]',
  '[ ${{ inputs.v }} ${{ inputs.v }} ]',
  '[[ -v ${{ inputs.v }} ]]',
  'printf -v ${{ inputs.v }} x',
  'printf -v${{ inputs.v }} x',
  'printf ${{ inputs.v }} x',
  'read ${{ inputs.v }} <<< x',
  'read -r "${{ inputs.v }}"',
  'mapfile -C ${{ inputs.v }} -c 1 a',
  'unset ${{ inputs.v }}',
  'trap ${{ inputs.v }} EXIT',
  'trap "echo ${{ inputs.v }}" EXIT',
  'eval ${{ inputs.v }}',
  'eval "echo ${{ inputs.v }}"',
  'eval "$(printf %s ${{ inputs.v }})"',
  "eval 'echo ${{ inputs.v }}'",
  'builtin eval ${{ inputs.v }}',
  'command eval ${{ inputs.v }}',
  'source ${{ inputs.v }}',
  '. <(echo ${{ inputs.v }})',
  "sh -c 'echo ${{ inputs.v }}'",
  'bash -c "echo ${{ inputs.v }}"',
  'bash -euo pipefail -c ${{ inputs.v }}',
  'bash ${{ inputs.v }}',
  'bash <(echo ${{ inputs.v }})',
  "env A=1 sh -c 'echo ${{ inputs.v }}'",
  "sudo -u a bash -c 'echo ${{ inputs.v }}'",
  "docker exec box sh -c 'echo ${{ inputs.v }}'",
  "find . -exec sh -c 'echo ${{ inputs.v }}' \\;",
  'ls | xargs -n 1 sh -c "echo ${{ inputs.v }}"',
  'ssh host "echo ${{ inputs.v }}"',
  `python3 -c "print('\${{ inputs.v }}')"`,
  `node -e "console.log('\${{ inputs.v }}')"`,
  `perl -e "print '\${{ inputs.v }}'"`,
  `awk "BEGIN { print \\"\${{ inputs.v }}\\" }"`,
  'sed "s/a/${{ inputs.v }}/" file',
  'node ${{ inputs.v }}',
  'echo ${{ inputs.v }} | sh',
  'echo ${{ inputs.v }} | sudo bash -s',
  'echo ${{ inputs.v }} | tee log | bash',
  'echo ${{ inputs.v }} | (cd /; sh)',
  'echo ${{ inputs.v }} | { sh; }',
  'echo ${{ inputs.v }} | bash /dev/stdin',
  'echo ${{ inputs.v }} | . /dev/stdin',
  'echo ${{ inputs.v }} | python3',
  'echo ${{ inputs.v }} | docker exec -i box bash',
  "echo ${{ inputs.v }} | xargs -I{} sh -c 'echo {}'",
  'echo ${{ inputs.v }} | xargs env',
  'echo ${{ inputs.v }} | tee >(sh)',
  '(echo ${{ inputs.v }}) | sh',
  'cat <<E | sh\necho ${{ inputs.v }}\nE',
  'sh <<E\necho ${{ inputs.v }}\nE',
  'bash -s <<E\necho ${{ inputs.v }}\nE',
  'sh <<< "echo ${{ inputs.v }}"',
  'sh < ${{ inputs.v }}',
  'sh < <(echo ${{ inputs.v }})',
  '{ sh; } <<E\necho ${{ inputs.v }}\nE',
  'ssh host <<E\necho ${{ inputs.v }}\nE',
  '${{ inputs.v }}',
  '"${{ inputs.v }}" x',
  './${{ inputs.v }}.sh',
  '$(echo ${{ inputs.v }}) x',
  'FOO=1 ${{ inputs.v }}',
  '$COMMAND ${{ inputs.v }}',
  'env ${{ inputs.v }}',
  'env A=1 ${{ inputs.v }} x',
  'sudo ${{ inputs.v }} x',
  'exec ${{ inputs.v }}',
  'command -- ${{ inputs.v }}',
  'nohup ${{ inputs.v }} &',
  'find . -exec ${{ inputs.v }} {} +',
  'x=a; echo ${x:${{ inputs.v }}}',
  'x=(a); echo ${x[${{ inputs.v }}]}',
  'x=(a); echo ${x[$(echo ${{ inputs.v }})]}',
  'a=([${{ inputs.v }}]=x)',
  'echo $(( $(echo ${{ inputs.v }}) ))',
  'for (( i = ${{ inputs.v }}; i < 3; i++ )); do :; done',
  'echo ${x@P${{ inputs.v }}}',
  'PS4=${{ inputs.v }}; set -x; :',
  'PROMPT_COMMAND="${{ inputs.v }}"',
  'BASH_ENV=${{ inputs.v }} bash x.sh',
  'git rebase -x ${{ inputs.v }}',
  'git -c ${{ inputs.v }} log',
  'echo "${{ inputs.v }}',
  'if true; then echo ${{ inputs.v }}',
] as const;

test.each(evaluated)('the script %j is rejected with a fix', script => {
  for (const shell of shells) {
    const { faults } = parseShellTemplate(script, shell);
    expect(faults[0]).toMatchObject({
      message: expect.stringContaining('`${{ }}` cannot be'),
      hint: expect.stringMatching(/env:|\$\( \)|another variable|\$VALUE/),
    });
  }
});

test.each([
  'export FOO=${{ inputs.v }}',
  'FOO=${{ inputs.v }} npm test',
  'env FOO=${{ inputs.v }} npm test',
  'sudo -u ${{ inputs.v }} npm test',
  'timeout ${{ inputs.v }} npm test',
  'bash -c \'echo "$1"\' _ ${{ inputs.v }}',
  'bash scripts/build.sh ${{ inputs.v }}',
  'node scripts/build.js ${{ inputs.v }}',
  "echo ${{ inputs.v }} | node -e 'process.stdin.pipe(process.stdout)'",
  'echo ${{ inputs.v }} | bash scripts/read.sh',
  "awk -v n=${{ inputs.v }} '{ print n }' ${{ inputs.v }}",
  "sed -n 's/a/b/p' ${{ inputs.v }}",
  'echo ${{ inputs.v }} | grep bash | xargs rm',
  '[ "${{ inputs.v }}" = x ] && [ -n ${{ inputs.v }} ]',
  'test ${{ inputs.v }} != y',
  'printf "Hello ${{ inputs.v }}\\n" x',
  'git -c user.name=${{ inputs.v }} commit -m ${{ inputs.v }}',
  'for x in ${{ inputs.v }}; do echo "$x"; done',
  'case ${{ inputs.v }} in ${{ inputs.v }}) ;; esac',
  'echo ${{ inputs.v }} > ${{ inputs.v }}',
  'cat <<E > file\n${{ inputs.v }}\nE',
  'x=$(echo ${{ inputs.v }}); echo "${x:-$(echo ${{ inputs.v }})}"',
  'docker build -t app:${{ inputs.v }} .',
])('the script %j is accepted', script => {
  expect(parseShellTemplate(script, 'bash').faults).toEqual([]);
});

test('a comment ends with its line, even if it contains an opening mark', () => {
  const { script, values } = parseShellTemplate("# don't ${{ write\necho ${{ inputs.v }}", 'bash');
  expect(script).toBe('# don\'t ${{ write\necho "${REPRISE_VALUE_1}"');
  expect(values).toHaveLength(1);
});

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
