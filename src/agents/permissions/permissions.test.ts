import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Json } from '../../core/json.ts';
import { actionOf, parseRule } from '../../core/tools.ts';
import { policyOf, requestOf } from '../test-support.ts';
import { applyPolicy, decide, type PermissionPolicy } from './permissions.ts';
import { pathsOf } from './rules.ts';

const workspace = '/home/ana/tree';

/** Resolves paths as the caller does, ignoring symbolic links. */
const decideOn = (policy: Partial<PermissionPolicy>, tool: string, input: Json = {}) =>
  decide(policyOf(policy), {
    tool,
    input,
    paths: pathsOf(tool, input).map(path => resolve(workspace, path)),
    workspace,
    resolve: path => resolve(workspace, path),
  });

const bash = (command: string) => ({ command });
const file = (file_path: string) => ({ file_path });

describe('a preset', () => {
  test.each([
    // tool, input, read-only, edit, full
    ['Read', file('src/a.ts'), 'allow', 'allow', 'allow'],
    ['Read', file('/home/ana/tree/src/a.ts'), 'allow', 'allow', 'allow'],
    ['Read', file('../other/a.ts'), 'deny', 'deny', 'allow'],
    ['Read', file('/etc/passwd'), 'deny', 'deny', 'allow'],
    ['Glob', { pattern: '**/*.ts' }, 'allow', 'allow', 'allow'],
    ['Glob', { pattern: '/etc/**' }, 'deny', 'deny', 'allow'],
    ['Glob', { pattern: 'src/*/../../../**' }, 'deny', 'deny', 'allow'],
    ['Glob', { pattern: '{..,x}/*' }, 'deny', 'deny', 'allow'],
    ['Glob', { pattern: '{a,/etc/*}' }, 'deny', 'deny', 'allow'],
    ['Glob', { pattern: '{a,{b,..}}/*' }, 'deny', 'deny', 'allow'],
    ['Glob', { pattern: '.{.,x}/*' }, 'deny', 'deny', 'allow'],
    ['Glob', { pattern: '{-..0}{-..0}/*' }, 'deny', 'deny', 'allow'],
    ['Glob', { pattern: '[.][.]/*' }, 'deny', 'deny', 'allow'],
    ['Glob', { pattern: 'src/[.a]?/*' }, 'deny', 'deny', 'allow'],
    ['Glob', { pattern: '\\.\\./*' }, 'deny', 'deny', 'allow'],
    ['Glob', { pattern: '@(..|x)/*' }, 'deny', 'deny', 'allow'],
    ['Glob', { pattern: '~/*' }, 'deny', 'deny', 'allow'],
    ['Glob', { pattern: 'src/{a,b}/**/*.{ts,tsx}' }, 'allow', 'allow', 'allow'],
    ['Glob', { pattern: '**/[a-z]*.test.ts' }, 'allow', 'allow', 'allow'],
    ['Glob', { pattern: '**/.*' }, 'allow', 'allow', 'allow'],
    ['Glob', { pattern: `${workspace}/{src,test}/**` }, 'allow', 'allow', 'allow'],
    ['Grep', { pattern: 'x', glob: '../../*' }, 'deny', 'deny', 'allow'],
    ['Grep', { pattern: 'x', glob: '{a,/etc/*}' }, 'deny', 'deny', 'allow'],
    ['Grep', { pattern: 'x', include: '[.][.]/*' }, 'deny', 'deny', 'allow'],
    ['Grep', { pattern: '../[.]', glob: '*.{ts,md}' }, 'allow', 'allow', 'allow'],
    ['Grep', { pattern: 'x' }, 'allow', 'allow', 'allow'],
    ['Grep', { pattern: 'x', path: '/' }, 'deny', 'deny', 'allow'],
    ['Edit', file('src/a.ts'), 'deny', 'allow', 'allow'],
    ['Write', file('new/file.ts'), 'deny', 'allow', 'allow'],
    ['Write', file('../file.ts'), 'deny', 'deny', 'allow'],
    ['Write', file('/home/ana/tree-2/file.ts'), 'deny', 'deny', 'allow'],
    ['Write', {}, 'deny', 'deny', 'allow'],
    ['Write', file('.git/hooks/pre-commit'), 'deny', 'deny', 'allow'],
    ['Write', file('vendor/x/.git/config'), 'deny', 'deny', 'allow'],
    ['Write', file('.gitignore'), 'deny', 'allow', 'allow'],
    ['Write', file('.claude/settings.json'), 'deny', 'deny', 'allow'],
    ['Edit', file('packages/a/Reprise.yaml'), 'deny', 'deny', 'allow'],
    ['Write', file('.mcp.json'), 'deny', 'deny', 'allow'],
    ['Edit', { changes: [{ path: 'a' }, { path: '.github/workflows/ci.yml' }] }, 'deny', 'deny', 'allow'],
    ['NotebookEdit', { notebook_path: 'a.ipynb' }, 'deny', 'allow', 'allow'],
    ['Edit', { changes: [{ path: 'a' }, { path: '/etc/b' }] }, 'deny', 'deny', 'allow'],
    ['Bash', bash('ls'), 'deny', 'deny', 'allow'],
    ['WebFetch', { url: 'https://example.com' }, 'deny', 'deny', 'allow'],
    ['WebSearch', {}, 'deny', 'deny', 'allow'],
    ['mcp__db__query', {}, 'deny', 'deny', 'allow'],
    ['AskUserQuestion', {}, 'deny', 'deny', 'allow'],
    ['constructor', {}, 'deny', 'deny', 'allow'],
    ['TodoWrite', {}, 'allow', 'allow', 'allow'],
    ['Task', {}, 'allow', 'allow', 'allow'],
  ])('%s(%j): read-only %s, edit %s, full %s', (tool, input, readOnly, edit, full) => {
    expect(decideOn({ preset: 'read-only' }, tool, input).kind).toBe(readOnly);
    expect(decideOn({ preset: 'edit' }, tool, input).kind).toBe(edit);
    expect(decideOn({ preset: 'full' }, tool, input).kind).toBe(full);
  });
});

describe('an `allow` rule', () => {
  test.each([
    ['Bash(npm test)', 'Bash', bash('npm test'), 'allow'],
    ['Bash(npm test)', 'Bash', bash('npm test 2>&1'), 'allow'],
    ['Bash(npm test)', 'Bash', bash('npm test -- --watch'), 'deny'],
    ['Bash(npm test)', 'Bash', bash('npm test2>/dev/null'), 'deny'],
    ['Bash(npm run *)', 'Bash', bash('npm run build'), 'allow'],
    ['Bash(npm run *)', 'Bash', bash('npm run'), 'allow'],
    ['Bash(npm run:*)', 'Bash', bash('npm run build'), 'allow'],
    ['Bash(npm run:*)', 'Bash', bash('npm runner'), 'deny'],
    ['Bash(npm run *)', 'Bash', bash('npm run build && npm run lint'), 'allow'],
    ['Bash(npm run *)', 'Bash', bash('npm run build && rm -rf /'), 'deny'],
    ['Bash(npm run *)', 'Bash', bash('npm run build; rm -rf /'), 'deny'],
    ['Bash(npm run *)', 'Bash', bash('npm run build\nrm -rf /'), 'deny'],
    ['Bash(npm run *)', 'Bash', bash('npm run build | sh'), 'deny'],
    ['Bash(npm run *)', 'Bash', bash('npm run build & rm x'), 'deny'],
    ['Bash(npm run *)', 'Bash', bash('npm run $(rm -rf /)'), 'deny'],
    ['Bash(npm run *)', 'Bash', bash('npm run `rm -rf /`'), 'deny'],
    ['Bash(npm run *)', 'Bash', bash('npm run "$(rm -rf /)"'), 'deny'],
    ['Bash(npm run *)', 'Bash', bash('npm run "a;b" \'c&d\''), 'allow'],
    ['Bash(npm run *)', 'Bash', bash("npm run $'a'"), 'deny'],
    ['Bash(npm run *)', 'Bash', bash('npm run x > ~/.bashrc'), 'deny'],
    ['Bash(npm run *)', 'Bash', bash('npm run x >/dev/null'), 'allow'],
    ['Bash(npm run *)', 'Bash', bash('npm run x >/dev/nullx'), 'deny'],
    ['Bash(npm run *)', 'Bash', bash('npm run <(rm x)'), 'deny'],
    ['Bash(npm run *)', 'Bash', bash('npm run "'), 'deny'],
    ['Bash', 'Bash', bash('anything > at && all'), 'allow'],
    ['Bash(*)', 'Bash', bash('anything'), 'allow'],
    ['Edit(docs/**)', 'Write', file('docs/a/b.md'), 'allow'],
    ['Edit(docs/**)', 'Write', file('src/a.ts'), 'deny'],
    ['Edit(docs/**)', 'Write', file('docs/../src/a.ts'), 'deny'],
    ['Edit(*.md)', 'Edit', file('a/b/c.md'), 'allow'],
    ['Edit(/*.md)', 'Edit', file('a/b/c.md'), 'deny'],
    ['Edit', 'Edit', file('/etc/hosts'), 'deny'],
    ['Edit', 'Edit', file('src/a.ts'), 'allow'],
    ['Write', 'Edit', file('src/a.ts'), 'deny'],
    ['Edit(//tmp/**)', 'Edit', file('/tmp/x'), 'allow'],
    ['Edit(//tmp/**)', 'Edit', file('/tmpx'), 'deny'],
    ['Read(//usr/share/**)', 'Grep', { pattern: 'x', path: '/usr/share/dict' }, 'allow'],
    ['WebFetch(domain:example.com)', 'WebFetch', { url: 'https://example.com/x' }, 'allow'],
    ['WebFetch(domain:example.com)', 'WebFetch', { url: 'https://example.com.evil.org/' }, 'deny'],
    ['WebFetch(domain:*.example.com)', 'WebFetch', { url: 'https://docs.example.com/' }, 'allow'],
    ['mcp__db', 'mcp__db__query', {}, 'allow'],
    ['mcp__db', 'mcp__dbx__query', {}, 'deny'],
    ['mcp__db__*', 'mcp__db__query', {}, 'allow'],
  ])('%s: %s(%j) is %sed', (rule, tool, input, expected) => {
    expect(decideOn({ preset: 'read-only', allow: [rule] }, tool, input).kind).toBe(expected);
  });

  test('allows a list of commands together with other rules', () => {
    const policy = { allow: ['Bash(npm ci)'], checks: ['npm test'] };
    expect(decideOn(policy, 'Bash', bash('npm ci && npm test')).kind).toBe('allow');
  });

  test('is not needed for the exact check commands of the step', () => {
    const policy = { checks: ['test -f *.js | wc -l > out'] };
    expect(decideOn(policy, 'Bash', bash('test -f *.js | wc -l > out')).kind).toBe('allow');
    expect(decideOn(policy, 'Bash', bash('test -f /etc/passwd.js | wc -l > out')).kind).toBe('deny');
  });
});

describe('a `deny` rule', () => {
  test.each([
    ['Bash(rm *)', 'Bash', bash('rm -rf x')],
    ['Bash(rm *)', 'Bash', bash('ls && rm x')],
    ['Bash(rm *)', 'Bash', bash('echo $(rm x)')],
    ['Bash(rm *)', 'Bash', bash('sh -c "rm x"')],
    ['Read(.env)', 'Read', file('config/.env')],
    ['Read(.env)', 'Grep', { pattern: 'x', path: '.env' }],
    ['Edit(src/secret/**)', 'Write', file('src/secret/key')],
    ['Edit', 'Write', file('a')],
    ['Read(//etc/**)', 'Read', file('/etc/passwd')],
    ['WebFetch', 'WebFetch', { url: 'https://example.com' }],
    ['mcp__db', 'mcp__db__drop', {}],
  ])('%s takes precedence over everything: %s(%j)', (rule, tool, input) => {
    const decision = decideOn({ preset: 'full', allow: [tool], deny: [rule] }, tool, input);
    expect(decision).toEqual({ kind: 'deny', message: expect.stringContaining(rule) });
  });

  test('does not affect other requests', () => {
    expect(decideOn({ deny: ['Read(.env)'] }, 'Read', file('.envrc')).kind).toBe('allow');
    expect(decideOn({ preset: 'full', deny: ['Bash(rm *)'] }, 'Bash', bash('rmdir x')).kind).toBe('allow');
  });
});

describe('a denial', () => {
  test.each([
    ['Bash', bash('npm run "x"'), 'allow: ["Bash(npm test)", "Bash(npm run \\"x\\")"]'],
    ['Write', file('/etc/hosts'), 'allow: ["Bash(npm test)", "Edit(//etc/hosts)"]'],
    [
      'WebFetch',
      { url: 'https://example.com/a' },
      'allow: ["Bash(npm test)", "WebFetch(domain:example.com)"]',
    ],
    ['mcp__db__query', {}, 'allow: ["Bash(npm test)", "mcp__db__query"]'],
  ])('suggests a line that allows the request: %s(%j)', (tool, input, lineToAdd) => {
    const allow = ['Bash(npm test)'];
    expect(decideOn({ allow }, tool, input)).toMatchObject({
      kind: 'deny',
      message: expect.stringContaining('`coder`'),
      lineToAdd,
    });
    const added = JSON.parse(lineToAdd.replace('allow: ', ''));
    expect(decideOn({ allow: added }, tool, input).kind).toBe('allow');
  });
});

test('every line that a denial suggests consists of valid rules', () => {
  const text = fc.oneof(fc.string(), fc.constantFrom('', ' ', '*', '~', '~/x', 'npm test', 'a\n'));
  const tool = fc.oneof(
    fc.constantFrom('Bash', 'Read', 'Edit', 'WebFetch', 'mcp__a.b__c', '$D'),
    fc.string(),
  );
  fc.assert(
    fc.property(tool, text, (name, value) => {
      const input = { command: value, file_path: value, url: value };
      const decision = decideOn({ preset: 'read-only' }, name, input);
      if (decision.kind === 'allow' || decision.lineToAdd === undefined) return;
      const rules = JSON.parse(decision.lineToAdd.replace('allow: ', ''));
      for (const rule of rules) expect(parseRule(rule)).toBeTypeOf('object');
    }),
    { numRuns: 1000 },
  );
});

describe('for any request of an agent', () => {
  const part = fc.constantFrom('..', '.', '', 'src', 'a.ts', '.git', 'work', 'tree', 'etc', '~', '*', '\0');
  const path = fc
    .tuple(fc.boolean(), fc.array(part, { maxLength: 6 }))
    .map(([isAbsolute, parts]) => `${isAbsolute ? '/' : ''}${parts.join('/')}`);
  const field = fc.constantFrom('file_path', 'notebook_path', 'path', 'paths', 'changes', 'locations');
  const input = fc
    .array(fc.tuple(field, path), { minLength: 1, maxLength: 3 })
    .map(fields =>
      Object.fromEntries(
        fields.map(([name, value]) => [name, name.endsWith('s') ? [{ path: value }, value] : value]),
      ),
    );
  const editing = fc.constantFrom('Edit', 'Write', 'MultiEdit', 'NotebookEdit');
  const relativeRules = fc.subarray([
    'Edit',
    'Write',
    'Edit(**)',
    'Edit(/**)',
    'Edit(../**)',
    'Edit(..)',
    'Read',
  ]);

  test('`edit` never allows changes outside the workspace', () => {
    fc.assert(
      fc.property(editing, input, relativeRules, (tool, given, allow) => {
        const isOutside = pathsOf(tool, given).some(
          each => !`${resolve(workspace, each)}/`.startsWith(`${workspace}/`),
        );
        const { kind } = decideOn({ preset: 'edit', allow }, tool, given);
        if (isOutside) expect(kind).toBe('deny');
      }),
      { numRuns: 3000 },
    );
  });

  test('`read-only` without rules never allows changes', () => {
    const tool = fc.oneof(editing, fc.constantFrom('Bash', 'WebFetch', 'mcp__a__b'), fc.string());
    fc.assert(
      fc.property(tool, fc.jsonValue(), (name, given) => {
        const { kind } = decideOn({ preset: 'read-only' }, name, given as Json);
        if (actionOf(name) !== 'read' && actionOf(name) !== 'harmless') expect(kind).toBe('deny');
      }),
    );
  });

  test('a command rule never allows a line that starts another command', () => {
    const tail = fc.constantFrom(';', '&&', '||', '|', '&', '\n', '$(', '`', '<(', '>', '<', '(');
    fc.assert(
      fc.property(tail, fc.string(), fc.string(), (sign, before, after) => {
        fc.pre(
          !/['"\\#]/.test(before + after) &&
            !/\b(?:cat|cd|grep|head|sort|tail|wc)\b/.test(after) &&
            /\w/.test(after) &&
            !/dev|[0-9]/.test(after),
        );
        const command = `npm test ${before}${sign} ${after}`;
        expect(decideOn({ allow: ['Bash(npm test *)'] }, 'Bash', bash(command)).kind).toBe('deny');
      }),
      { numRuns: 2000 },
    );
  });
});

test('paths are read from every field in which a tool can name them', () => {
  expect(pathsOf('Edit', { file_path: 'a', changes: [{ path: 'b' }], paths: ['c'] })).toEqual([
    'a',
    'c',
    'b',
  ]);
  expect(pathsOf('Grep', {})).toEqual(['.']);
  expect(pathsOf('Glob', { pattern: join('src', '**') })).toEqual(['.', 'src']);
  expect(pathsOf('Write', null)).toEqual([]);
});

describe('a protected file', () => {
  test('is denied whatever the rules allow, and the message says how to change that', () => {
    const allow = ['Edit', 'Edit(/reprise.yaml)', 'Write(//**)'];
    for (const preset of ['read-only', 'edit'] as const) {
      const decision = decideOn({ preset, allow, otherwise: 'ask' }, 'Write', file('reprise.yaml'));
      expect(decision).toMatchObject({
        kind: 'deny',
        message: expect.stringContaining('protect: ["!reprise.yaml"]'),
      });
      expect(decision).not.toHaveProperty('lineToAdd');
    }
  });

  test('is what the project says', () => {
    const protect = ['Makefile', '!.vscode/**'];
    expect(decideOn({ protect }, 'Edit', file('Makefile')).kind).toBe('deny');
    expect(decideOn({ protect }, 'Edit', file('.vscode/settings.json')).kind).toBe('allow');
  });

  test('is never found above the workspace', () => {
    const inside = '/repo/.reprise/workspaces/w/r/s/worker_0';
    const request = { tool: 'Edit', input: {}, workspace: inside, resolve: (path: string) => path };
    expect(decide(policyOf(), { ...request, paths: [`${inside}/src/a.ts`] }).kind).toBe('allow');
  });

  test('is one in the folder of git hooks, and one behind a link', () => {
    const root = realpathSync(mkdtempSync(join(tmpdir(), 'reprise-hooks-')));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    execFileSync('git', ['init', '-q', root]);
    execFileSync('git', ['-C', root, 'config', 'core.hooksPath', join(root, 'tools/Hooks')]);
    mkdirSync(join(root, '.claude'));
    symlinkSync('.claude', join(root, 'docs'));
    const rule = applyPolicy(requestOf({ cwd: root }), { inheritEnv: process.env });
    const kindOf = (path: string) => {
      const ruling = rule('Write', file(path));
      return ruling.kind === 'decided' ? ruling.decision.kind : ruling.kind;
    };
    expect(kindOf('tools/hooks/pre-commit')).toBe('deny');
    expect(kindOf('docs/settings.json')).toBe('deny');
    expect(kindOf('src/tools/hooks/pre-commit')).toBe('allow');
  });
});
