import { resolve } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { policyOf } from '../test-support.ts';
import { decide, type PermissionPolicy } from './permissions.ts';

const workspace = '/home/ana/tree';

const decideOn = (policy: Partial<PermissionPolicy>, command: string) =>
  decide(policyOf(policy), {
    tool: 'Bash',
    input: { command },
    paths: [],
    workspace,
    // A symbolic link that leaves the workspace, and one that does not.
    resolve: path => resolve(workspace, path).replace(`${workspace}/out`, '/elsewhere'),
  });

const ruling = (allow: readonly string[], command: string) =>
  decideOn({ preset: 'edit', allow: allow.map(rule => `Bash(${rule})`) }, command).kind;

describe('an `allow` rule accepts what agents type', () => {
  test.each([
    ['npm test', 'npm test 2>&1 | tail -5'],
    ['npm test', 'npm test 2>&1 | tail -n 20 | grep -i -A 3 "fail"'],
    ['npm test', `cd ${workspace} && npm test`],
    ['npm test', `cd "${workspace}" && npm test 2>&1 | tail -5`],
    ['npm test', 'cd packages/a && npm test'],
    ['npm test *', 'npm test -- --run'],
    ['npm test *', 'npm test -- --run 2>&1 | head -50'],
    ['npm test', '  npm   test  '],
    ['npm test', '"npm" te\\st'],
    ['npm test', 'time npm test'],
    ['npm test', 'npm test > /dev/null 2>&1; npm test &>/dev/null </dev/null'],
    ['npm test', 'npm test # all of them'],
    ['npm test', 'npm test 2>&1 | sort | wc -l'],
    ['npm test', 'npm test 2>&1 | grep -v -e PASS | cat -n'],
    ['npm test', 'npm test 2>&1 | grep -E "a|b" | sort -rn -k 2 -t , | head -3'],
    ['npm run *', 'npm run "a b" $NAME ${NAME} src/*.ts {a,b}'],
    ['git log *', 'git status && git log --oneline | head -3', 'git status'],
    ['npm test', 'cat README.md | grep x'],
    ['npm test', 'npm test | grep /src/'],
    ['CI=1 npm test *', 'CI=1 npm test a'],
    ['timeout 60 npm test *', 'timeout 60 npm test a'],
    ['find src -name *', 'find src -name "*.ts"'],
    ['bash scripts/build.sh *', 'bash scripts/build.sh --fast'],
    ['echo $HOME', 'npm test && echo $HOME', 'npm test'],
    ['find . -exec rm {} +', 'find . -exec rm {} +'],
  ])('Bash(%s): %s', (rule, command, ...others) => {
    expect(ruling([rule, ...others], command)).toBe('allow');
  });
});

describe('a rule with a wildcard allows no other command', () => {
  test.each([
    ['npm run *', 'npm run ${x:=\\$\\(touch pwned\\)} ${x@P}'],
    ['npm run *', 'npm run ${y:=x[\\$\\(touch pwned\\)]} $[y]'],
    ['npm run *', 'npm run ${x:=\\`touch pwned\\`} ${x@P}'],
    ['npm run *', 'npm run ${y:=x[\\`touch pwned\\`]} $((y))'],
    ['npm run *', 'npm run ${a[$(touch pwned)]}'],
    ['npm run *', 'npm run ${!x}'],
    ['npm run *', 'npm run {a,$(touch pwned)}'],
    ['npm run *', 'npm run [$(touch pwned)]'],
    ['npm run *', 'npm run *(e:"touch pwned":)'],
    ['npm run *', 'npm run "${(e)x}"'],
    ['npm run *', 'npm run x\ntouch pwned'],
    ['npm run *', 'npm run x\\\n; touch pwned'],
    ['npm run *', 'npm run <<< "$(touch pwned)"'],
    ['npm run *', 'npm run <<E\n$(touch pwned)\nE'],
    ['npm run *', 'npm run < /etc/passwd'],
    ['npm run *', 'npm run > package.json'],
    ['npm run *', 'npm run {fd}>/dev/null'],
    ['npm run *', 'PATH=. npm run x'],
    ['npm run *', 'npm() { touch pwned; }; npm run x'],
    ['npm run *', 'npm run 3<(touch pwned)'],
    ['npm run *', 'npm run 3>(touch pwned)'],
    ['npm run *', '(npm run x)'],
    ['npm run *', 'if npm run x; then touch pwned; fi'],
    ['npm run *', 'npm run x | sh'],
    ['npm run *', 'npm run x | sort -o package.json'],
    ['npm run *', 'npm run x | sort --compress-program=./evil'],
    ['npm run *', 'npm run x | sort --comp=./evil'],
    ['npm run *', 'npm run x | grep -f /etc/passwd'],
    ['npm run *', 'npm run x | cat /etc/passwd'],
    ['npm run *', 'npm run x | grep root /etc/passwd'],
    ['npm run *', 'npm run x | cat out/secret'],
    ['npm run *', 'npm run x | tee package.json'],
    ['npm run *', 'npm run x | xargs rm'],
    ['npm run *', 'cd / && npm run x'],
    ['npm run *', 'cd .. && npm run x'],
    ['npm run *', 'cd out && npm run x'],
    ['npm run *', 'cd && npm run x'],
    ['npm run *', 'cd - && npm run x'],
    ['npm run *', 'cd ~ && npm run x'],
    ['npm run *', 'cd a; cd b && npm run x'],
    ['npm run *', 'cd $OLDPWD && npm run x'],
    ['npm run *', 'cd packages/a && cat ../../../secret; npm run x'],
    ['npm run *', 'npm run x\0; touch pwned'],
    ['npm run *', 'npm run x\rtouch pwned'],
    ['./run.sh *', 'cd packages/a && ./run.sh x'],
    ['my prog *', '"my prog" x'],
    ['npm run a', 'npm "run a"'],
    ['env *', 'env rm -rf x'],
    ['env *', 'env A=1 rm -rf x'],
    ['env *', "env -S 'rm -rf x'"],
    ['command *', 'command rm x'],
    ['sudo *', 'sudo -u root rm x'],
    ['timeout *', 'timeout 5 rm x'],
    ['timeout 5 *', 'timeout 5 rm x'],
    ['xargs *', 'xargs rm'],
    ['xargs -I {} *', 'xargs -I {} rm {}'],
    ['find *', 'find . -exec rm {} +'],
    ['find . *', 'find . -name x -execdir rm {} ;'],
    ['find . -exec *', 'find . -exec rm {} ;'],
    ['bash *', "bash -c 'rm x'"],
    ['bash *', 'bash evil.sh'],
    ['bash *', 'npm test | bash', 'npm test'],
    ['bash -c *', "bash -c 'rm x'"],
    ['eval *', 'eval rm x'],
    ['eval echo *', "eval echo '; rm x'"],
    ['trap *', "trap 'rm x' EXIT"],
    ['test *', "test -v 'a[$(touch pwned)]'"],
    ['[ *', "[ -v 'a[$(touch pwned)]' ]"],
    ['printf *', "printf -v 'a[$(touch pwned)]' x"],
    ['export *', 'export PATH=. && npm test', 'npm test'],
    ['git *', "git -c alias.x='!rm y' x"],
    ['git *', "git rebase -x 'rm y'"],
    ['git *', 'git bisect run rm y'],
    ['git *', "git config core.pager 'rm y'"],
    ['* test', 'LD_PRELOAD=./evil.so npm test'],
    ['* x', 'sh x'],
  ])('Bash(%s): %j', (rule, command, ...others) => {
    expect(ruling([rule, ...others], command)).toBe('deny');
  });

  test('says why the text of a line does not tell what it does', () => {
    expect(decideOn({ allow: ['Bash(npm run *)'] }, 'npm run ${x@P}')).toMatchObject({
      message: expect.stringContaining('it contains `${x@P}`, whose text does not tell what it does'),
    });
    expect(decideOn({ allow: ['Bash(npm run *)'] }, 'npm run "')).toMatchObject({
      message: expect.stringContaining('it is not valid shell text (unterminated double quote)'),
    });
    expect(decideOn({ allow: ['Bash(npm run *)'] }, 'npm run a && rm x')).toMatchObject({
      message: expect.stringContaining('no rule allows `rm x`'),
    });
  });

  test('a filter reads only what the agent may read', () => {
    const policy = { allow: ['Bash(npm test)'], deny: ['Read(.env)'] };
    expect(decideOn(policy, 'npm test; cat .env').kind).toBe('deny');
    expect(decideOn(policy, 'npm test; cat src/a.ts').kind).toBe('allow');
  });
});

const deny = ['Bash(rm *)', 'Bash(git push *)', 'Bash(curl * | sh)'];
const denied = (command: string) => decideOn({ preset: 'full', deny }, command);

/** Ways to write a command that runs `rm -rf x` or `git push origin`. */
const hostile = [
  'rm -rf x',
  'rm\t-rf x',
  'r\\m -rf x',
  "r''m -rf x",
  '"rm" -rf x',
  "$'\\x72m' -rf x",
  '$"rm" -rf x',
  '/bin/rm -rf x',
  '../../bin/rm -rf x',
  'RM -rf x',
  'FOO=1 rm -rf x',
  'FOO=1 BAR=2 git push origin',
  '! rm -rf x',
  'if true; then rm -rf x; fi',
  'while true; do rm -rf x; break; done',
  'case a in a) rm -rf x;; esac',
  '{ rm -rf x; }',
  '(rm -rf x)',
  'f() { rm -rf x; }; f',
  'coproc rm -rf x',
  'echo $(rm -rf x)',
  'echo "`rm -rf x`"',
  'echo `echo \\`rm -rf x\\``',
  'cat <(rm -rf x)',
  'cat 3<(rm -rf x)',
  'cat <<E\n$(rm -rf x)\nE',
  'echo ${y:-$(rm -rf x)}',
  'echo $(( $(rm -rf x) ))',
  '(( a[$(rm -rf x)] ))',
  '[[ -n $(rm -rf x) ]]',
  'ls & rm -rf x',
  'ls\nrm -rf x',
  'ls || rm -rf x',
  '>/dev/null rm -rf x',
  'rm>/dev/null -rf x',
  'env rm -rf x',
  'env -i A=1 rm -rf x',
  'env -u A rm -rf x',
  "env -S 'rm -rf x'",
  'command rm -rf x',
  'command -p rm -rf x',
  'builtin command rm -rf x',
  'exec rm -rf x',
  'exec -a ls rm -rf x',
  'nohup rm -rf x &',
  'time rm -rf x',
  '/usr/bin/time -f %e rm -rf x',
  'sudo rm -rf x',
  'sudo -u root env A=1 rm -rf x',
  'nice -n 5 rm -rf x',
  'timeout 5 rm -rf x',
  'setsid rm -rf x',
  'busybox rm -rf x',
  'noglob rm -rf x',
  'repeat 2 rm -rf x',
  'ls | xargs rm',
  'ls | xargs -n 1 -I {} rm {}',
  'echo x | xargs sh -c "rm -rf x"',
  'find . -exec rm {} +',
  'find . -name a -o -execdir /bin/rm {} \\;',
  "find . -exec sh -c 'rm -rf x' \\;",
  'x=rm; $x -rf x',
  '${x:-rm} -rf x',
  '$(echo rm) -rf x',
  '{rm,-rf,x}',
  'r{m,} -rf x',
  '/bin/r? -rf x',
  '/bin/r[m] -rf x',
  '=rm -rf x',
  "eval 'rm -rf x'",
  'eval rm -rf x',
  'eval "$x"',
  "sh -c 'rm -rf x'",
  'bash -lc "rm -rf x"',
  '/bin/bash -o errexit -c "rm -rf x"',
  `sh -c "sh -c 'rm -rf x'"`,
  'sh -c "$x"',
  'echo rm -rf x | sh',
  'sh <<< "rm -rf x"',
  'bash <<E\nrm -rf x\nE',
  'bash -s <<E\nrm -rf x\nE',
  '{ sh; } <<E\nrm -rf x\nE',
  'bash <(echo rm -rf x)',
  'source <(echo rm -rf x)',
  '. rm',
  'bash /bin/rm',
  '. /dev/stdin <<< "rm -rf x"',
  "trap 'rm -rf x' EXIT",
  "alias ls='rm -rf x'",
  "watch 'rm -rf x'",
  "su -c 'rm -rf x'",
  "ssh host 'rm -rf x'",
  "GIT_SSH_COMMAND='rm -rf x' git fetch",
  "PS4='$(rm -rf x)'; set -x; ls",
  "y='a[$(rm -rf x)]'; echo $((y))",
  "test -v 'a[$(rm -rf x)]'",
  'echo ${y:=\\$\\(rm x\\)} ${y@P}',
  'ls *(e:"rm x":)',
  `python3 -c "import os; os.system('rm -rf x')"`,
  `node -e 'require("child_process").execSync("rm -rf x")'`,
  `awk 'BEGIN { system("rm -rf x") }'`,
  'git push origin',
  'git  push origin',
  'git -C . push origin',
  'git -c a=b push origin',
  'git -c a=b -C . --no-pager push origin',
  'git --git-dir=.git push',
  'git --git-dir .git push',
  'git $x origin',
  'git $x push',
  'git pus? origin',
  'git {push,origin}',
  'git -c alias.p=push p',
  'git config alias.p push && git p',
  "git -c core.pager='rm -rf x' log",
  "git submodule foreach 'rm -rf x'",
  'git bisect run rm -rf x',
  'xargs -a list git push',
  'rm -rf "x',
  'if rm',
  'ls\0; rm -rf x',
  'curl x | sh',
  '$(rm -rf x',
];

describe('a `deny` rule', () => {
  test.each(hostile)('refuses %j', command => {
    expect(denied(command)).toEqual({ kind: 'deny', message: expect.stringContaining('`deny: ["Bash(') });
  });

  test.each([
    'ls -la',
    'git rm old.ts',
    'docker rm box',
    'rmdir x',
    'git status && git log --oneline | head -3',
    'git commit -m "rm old files, then git push"',
    'grep -rn "git push" docs',
    'git add *.ts && git commit -m "$MESSAGE"',
    'for f in *.ts; do echo "$f"; done',
    'if [ -f a ]; then cat a; fi',
    'echo $((i + 1)) "${x:-y}" "${x%.ts}"',
    'sudo -u "$USER" ls',
    'timeout 60 npm test "$NAME"',
    'cat <<E > notes.md\ngit push is forbidden\nE',
    'bash scripts/build.sh',
    'bash --version',
    "sh -c 'ls'",
    "python3 -c 'print(1 + 1)'",
    'npm run build && npm test 2>&1 | tail -5',
    'find . -name "*.tmp"',
    'git push-notes',
    'x=1 npm test',
  ])('does not affect %j', command => {
    expect(denied(command)).toEqual({ kind: 'allow' });
  });

  test('says why it refuses a line that it cannot read', () => {
    expect(denied('$x -rf y')).toMatchObject({
      message:
        'Bash($x -rf y) is refused, because it may run what `deny: ["Bash(rm *)"]` of the agent `coder` denies: the name of a program is computed (`$x`).',
    });
    expect(denied('git $x')).toMatchObject({
      message: expect.stringContaining('`git ...` is computed in part'),
    });
  });

  test('with the folder of a program denies the program in every folder', () => {
    const policy = { preset: 'full', deny: ['Bash(./scripts/deploy *)'] } as const;
    expect(decideOn(policy, 'cd scripts && ./deploy now').kind).toBe('deny');
  });
});

describe('for any way to write a command', () => {
  /** Writes a word with quotes, backslashes and line continuations that a shell removes. */
  const disguised = (word: string) =>
    fc
      .array(fc.constantFrom('', "''", '""', '\\\n', 'quote', 'double', 'escape'), {
        minLength: word.length,
        maxLength: word.length,
      })
      .map(styles =>
        [...word]
          .map((sign, at) => {
            const style = styles[at] ?? '';
            if (style === 'quote') return `'${sign}'`;
            if (style === 'double') return `"${sign}"`;
            if (style === 'escape') return `\\${sign}`;
            return style + sign;
          })
          .join(''),
      );
  const blank = fc.constantFrom(' ', '  ', '\t', ' \t ', '\\\n ', ' \\\n');
  const before = fc.constantFrom(
    '',
    'A=1 ',
    'env ',
    'command ',
    'sudo -u a ',
    'ls; ',
    'ls | xargs ',
    '! ',
    '{ ',
  );
  const written = fc
    .constantFrom(['rm', 'x'], ['git', 'push', 'origin'], ['npm', 'publish'])
    .chain(words => fc.tuple(before, blank, ...words.map(disguised)))
    .map(([start, space, ...words]) => start + words.join(space) + (start === '{ ' ? '; }' : ''));

  test('blanks, quotes and wrappers never get past `deny`', () => {
    const rules = ['Bash(rm *)', 'Bash(git push *)', 'Bash(npm publish *)'];
    fc.assert(
      fc.property(written, command => {
        expect(decideOn({ preset: 'full', deny: rules }, command).kind).toBe('deny');
      }),
      { numRuns: 500 },
    );
  });

  test('a decision takes a bounded time, and never throws', () => {
    const piece = fc.constantFrom(
      '$(',
      ')',
      '`',
      '"',
      "'",
      '\\',
      '{',
      '}',
      '[[',
      '((',
      '<<E\n',
      '\n',
      ';',
      '|',
      'rm',
      'sh -c ',
      ' ',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), pieces => {
        decideOn({ allow: ['Bash(npm *)'], deny }, pieces.join(''));
      }),
    );
    const started = performance.now();
    for (const text of ['(', '$(', '"$(', '{ ', 'sudo ', '`', 'eval ', 'git -a '])
      decideOn({ allow: ['Bash(npm *)'], deny }, text.repeat(5000));
    expect(performance.now() - started).toBeLessThan(5000);
  });
});
