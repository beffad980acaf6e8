import { execFileSync, spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createProject, defineModule, parseLines, runInline, zodModule } from './run-inline.ts';

const hello = `
name: hello
inputs:
  who: { type: string, required: true }
  times: { type: number, default: 1 }
  loud: { type: boolean, default: false }
  extra: { type: json }
steps:
  - id: greet
    run: 'printf "%s\\n" "{\\"who\\": \\"$WHO\\"}" > "$REPRISE_OUTPUT"'
    env: { WHO: "\${{ inputs.who }}" }
  - { id: done, needs: [greet], run: 'echo finished' }
outputs:
  who: \${{ steps.greet.outputs.who }}
  times: \${{ inputs.times }}
  loud: \${{ inputs.loud }}
  extra: \${{ inputs.extra }}
`;
const files = { '.reprise/workflows/hello.yaml': hello };

describe('reprise run', () => {
  it('prints the output as one line of JSON, and progress on standard error', async () => {
    const { code, stdout, stderr, project } = await runInline({
      files,
      args: ['run', 'hello', '--input', 'who=ana'],
    });
    expect(code).toBe(0);
    expect(stdout).toBe('{"who":"ana","times":1,"loud":false,"extra":null}\n');
    expect(project.stable(stderr)).toMatchInlineSnapshot(`
      "<time> hello  run <run> started: 2 steps
      <time> greet  started
      <time> greet  ok <took>
      <time> done  started
      <time> done  ok <took>
      <time> hello  completed in <took>

      ✓ hello completed in <took>

        ✓  greet  <took>
        ✓  done  <took>
        2 steps, peak concurrency 1, <took> wall, <took> total

      next: reprise show <run>  show the run and its output
            reprise history <run>  show all events
      "
    `);
  });

  it('converts inputs to their declared types', async () => {
    const args = [
      'run',
      'hello',
      '-i',
      'who=7',
      '-i',
      'times=3',
      '-i',
      'loud=true',
      '-i',
      'extra={"a":[null]}',
      '--quiet',
    ];
    const { stdout, stderr } = await runInline({ files, args });
    expect(JSON.parse(stdout)).toEqual({ who: '7', times: 3, loud: true, extra: { a: [null] } });
    expect(stderr).toBe('');
  });

  it('reads inputs from a file, standard input and JSON, and --input overrides them', async () => {
    const project = createProject({ files: { ...files, 'in.json': '{"who": "file", "times": 2}' } });
    const fromFile = await project.run([
      'run',
      'hello',
      '-q',
      '--input-file',
      'in.json',
      '--input-json',
      '{"times": 5}',
      '-i',
      'who=flag',
    ]);
    expect(JSON.parse(fromFile.stdout)).toMatchObject({ who: 'flag', times: 5 });
    const fromStdin = await project.run(['run', 'hello', '-q', '--input-file', '-'], {
      stdin: '{"who": "pipe"}',
    });
    expect(JSON.parse(fromStdin.stdout)).toMatchObject({ who: 'pipe' });
  });

  it('passes hostile values to the script as plain text', async () => {
    const script = `
name: hostile
inputs: { value: { type: string, required: true } }
steps:
  - id: show
    run: |
      printf '%s' \${{ inputs.value }} > seen.txt
      printf '%s' "in quotes: \${{ inputs.value }}" > quoted.txt
`;
    const value = `'; touch pwned; "$(touch pwned)" \`touch pwned\` \${HOME} \\ \n*\t#`;
    const project = createProject({ files: { 'hostile.yaml': script } });
    const { code, stderr } = await project.run(['run', 'hostile.yaml', '--input', `value=${value}`]);
    expect(code, stderr).toBe(0);
    expect(project.read('seen.txt')).toBe(value);
    expect(project.read('quoted.txt')).toBe(`in quotes: ${value}`);
    expect(project.has('pwned')).toBe(false);
  });

  it('prints only NDJSON with --json: every event, then the result', async () => {
    const { code, stdout, stderr } = await runInline({
      files,
      args: ['run', 'hello', '-i', 'who=ana', '--json'],
    });
    expect(code).toBe(0);
    expect(stderr).toBe('');
    const lines = parseLines<{ type: string; seq?: number; status?: string; output?: unknown }>(stdout);
    expect(lines.slice(0, -1).map(({ seq }) => seq)).toEqual(lines.slice(0, -1).map((_, index) => index + 1));
    expect(lines.map(({ type }) => type)).toEqual([
      'run.started',
      'step.started',
      'step.completed',
      'step.started',
      'step.completed',
      'run.completed',
      'result',
    ]);
    expect(lines.at(-1)).toMatchObject({ status: 'completed', output: { who: 'ana' } });
  });

  it('completes with its own exit code after the reader of its output has exited', async () => {
    const project = createProject({
      files: {
        'two.yaml': 'steps:\n  - { id: a, run: "true" }\n  - { id: b, needs: [a], run: "touch b" }\n',
      },
    });
    const cli = resolve('dist/cli/main.js');
    const { status, stderr } = spawnSync(
      'bash',
      [
        '-c',
        `"${process.execPath}" "${cli}" run two.yaml --json | head -1 >/dev/null; exit "\${PIPESTATUS[0]}"`,
      ],
      {
        cwd: project.root,
        encoding: 'utf8',
      },
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(project.has('b')).toBe(true);
  });

  it('shows the output of steps with --verbose', async () => {
    const { stderr } = await runInline({ files, args: ['run', 'hello', '-i', 'who=ana', '--verbose'] });
    expect(stderr).toContain('| finished');
  });

  it('says which step failed and what to type next', async () => {
    const failing =
      'steps:\n  - { id: build, run: "echo no compiler >&2; exit 3" }\n  - { id: ship, needs: [build], run: "true" }\n';
    const { code, stdout, stderr, project } = await runInline({
      files: { 'broken.yaml': failing },
      args: ['run', 'broken.yaml'],
    });
    expect(code).toBe(1);
    expect(stdout).toBe('');
    expect(project.stable(stderr)).toMatchInlineSnapshot(`
      "<time> broken  run <run> started: 2 steps
      <time> build  started
      <time> build  failed: exited with code 3
      <time> build  | no compiler
      <time> ship  skipped: build failed
      <time> broken  failed after <took>: build: exited with code 3

      ✗ broken failed after <took>

        ✗  build  <took>  exited with code 3
        –  ship  build failed
        2 steps, peak concurrency 1, <took> wall, <took> total

      build: exited with code 3 [EXIT_NONZERO]
        | no compiler
        hint: The whole output is in <root>/.reprise/state/logs/<run>/build.1.log

      next: reprise resume <run>  after fixing it; finished steps are kept
            reprise history <run>  show all events
      "
    `);
  });

  it('exits with 4 when the run exceeds its budget', async () => {
    const slow = 'runtime: { budget: { minutes: 0.001 } }\nsteps:\n  - { id: slow, run: "sleep 600" }\n';
    const { code, stderr } = await runInline({ files: { 'slow.yaml': slow }, args: ['run', 'slow.yaml'] });
    expect(code).toBe(4);
    expect(stderr).toContain('BUDGET_EXCEEDED');
  });
});

describe('reprise run <workflow>', () => {
  it('finds the project root from a subfolder, and records the source relative to it', async () => {
    const project = createProject({ files: { ...files, 'deep/down/note.txt': '' } });
    const { code, stdout } = await project.run(['run', 'hello', '-i', 'who=ana', '--json'], {
      cwd: 'deep/down',
    });
    expect(code).toBe(0);
    expect(parseLines(stdout)[0]).toMatchObject({ data: { source: '.reprise/workflows/hello.yaml' } });
    expect(project.has('.reprise/state/reprise.db')).toBe(true);
  });

  it('runs a named export of a module, and lists the exports if none is named', async () => {
    const module = `
import { step, workflow } from '${defineModule}';
import { z } from '${zodModule}';
const add = step('add', { run: (_, ctx) => ctx.input.numbers.reduce((a, b) => a + b, ctx.input.start) });
const input = z.object({ numbers: z.array(z.number()), start: z.number().default(0), label: z.string().or(z.boolean()).optional() });
export const sum = workflow('sum', { steps: [add], input, output: { add } });
export const other = workflow('other', { steps: [step('one', { run: () => 1 })] });
`;
    const project = createProject({ files: { 'flows.mjs': module } });
    const named = await project.run([
      'run',
      'flows.mjs#sum',
      '-q',
      '-i',
      'numbers=[1,2]',
      '-i',
      'start=4',
      '-i',
      'label=true',
    ]);
    expect(named).toMatchObject({ code: 0, stdout: '{"add":7}\n' });
    const again = await project.run(['resume', '--quiet']);
    expect(again).toMatchObject({ code: 0, stdout: '{"add":7}\n' });
    const several = await project.run(['run', 'flows.mjs']);
    expect(several.code).toBe(2);
    expect(several.stderr).toMatchInlineSnapshot(`
      "error[WORKFLOW_NOT_FOUND]: flows.mjs exports several workflows
        hint: name one: flows.mjs#other, flows.mjs#sum
      "
    `);
  });

  it('loads TypeScript with the tsx of the project, and suggests it if it is missing', async () => {
    if (Reflect.get(process.features, 'typescript')) return;
    const flow = `import { step, workflow } from '${defineModule}';\nconst answer: number = 42;\nexport default workflow('typed', { steps: [step('answer', { run: (): number => answer })] });\n`;
    const project = createProject({ files: { 'typed.ts': flow } });
    const without = await project.run(['run', 'typed.ts']);
    expect(without.code).toBe(2);
    expect(without.stderr.replace(process.version, '<version>')).toMatchInlineSnapshot(`
      "error[DEFINITION_INVALID]: this Node.js (<version>) cannot load typed.ts
        hint: install tsx in the project (npm install --save-dev tsx), use Node.js 22.18 or newer, or write the workflow as .mjs
      "
    `);
    const hooks = `import ts from 'file://${resolve('node_modules/typescript/lib/typescript.js')}';
import { readFileSync } from 'node:fs';
export async function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context);
  const source = ts.transpileModule(readFileSync(new URL(url), 'utf8'), { compilerOptions: { module: 'esnext', target: 'es2022' } });
  return { format: 'module', source: source.outputText, shortCircuit: true };
}`;
    project.write({
      'node_modules/tsx/package.json': '{"name":"tsx","type":"module","exports":{"./esm/api":"./api.js"}}',
      'node_modules/tsx/api.js':
        "import { register as add } from 'node:module';\nexport const register = () => add('./hooks.js', import.meta.url);\n",
      'node_modules/tsx/hooks.js': hooks,
    });
    expect(await project.run(['run', 'typed.ts', '-q'])).toMatchObject({
      code: 0,
      stdout: '{"answer":42}\n',
    });
  });

  it('finds child workflows by name and by path', async () => {
    const project = createProject({
      files: {
        '.reprise/workflows/child.yaml':
          'inputs: { n: { type: number } }\nsteps:\n  - { id: c, run: "echo ${{ inputs.n }} >> marks" }\n',
        'near/child.yaml': 'steps:\n  - { id: c, run: "echo near >> marks" }\n',
        'near/parent.yaml':
          'steps:\n  - { id: a, uses: child, with: { n: 1 } }\n  - { id: b, needs: [a], uses: ./child.yaml }\n',
      },
    });
    const { code, stderr } = await project.run(['run', 'near/parent.yaml']);
    expect(code, stderr).toBe(0);
    expect(project.read('marks')).toBe('1\nnear\n');
  });
});

describe('max_concurrent_workers', () => {
  const fourSteps = `
runtime: { max_concurrent_workers: 2 }
steps:
${[1, 2, 3, 4].map(n => `  - { id: s${n}, run: "true" }`).join('\n')}
`;
  const peakConcurrency = (ndjson: string): number => {
    let [running, peak] = [0, 0];
    for (const { type } of parseLines<{ type: string }>(ndjson)) {
      if (type === 'step.started') running++;
      else if (type === 'step.completed') running--;
      peak = Math.max(peak, running);
    }
    return peak;
  };

  it('is taken from the flag, else the environment, else the workflow, else the project', async () => {
    const project = createProject({
      files: { 'w.yaml': fourSteps, 'reprise.yaml': 'runtime: { max_concurrent_workers: 1 }\n' },
    });
    const peakOf = async (args: readonly string[], env = {}) => {
      const { code, stdout } = await project.run(['run', 'w.yaml', '--json', ...args], { env });
      expect(code).toBe(0);
      return peakConcurrency(stdout);
    };
    const env = { REPRISE_MAX_CONCURRENT_WORKERS: '3' };
    expect(await peakOf(['--max-concurrent', '4'], env)).toBe(4);
    expect(await peakOf([], env)).toBe(3);
    expect(await peakOf([])).toBe(2);
    project.write({ 'w.yaml': fourSteps.replace(/runtime.*\n/, '') });
    expect(await peakOf([])).toBe(1);
  });
});

describe('the state folder', () => {
  it('belongs to the repository: its worktrees share it, and git sees nothing of it', async () => {
    const project = createProject({ files, git: true });
    const git = (cwd: string, ...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=ana', '-c', 'user.email=ana@example.org', ...args], {
        cwd,
        encoding: 'utf8',
      });
    git(project.root, 'add', '.');
    git(project.root, 'commit', '--quiet', '-m', 'Initial commit');
    await project.run(['run', 'hello', '-i', 'who=ana']);
    expect(project.has('.git/reprise/reprise.db')).toBe(true);
    expect(git(project.root, 'status', '--porcelain')).toBe('');
    expect(project.read('.git/info/exclude').match(/^\.reprise\/.*$/gm)).toEqual(['.reprise/workspaces/']);

    git(project.root, 'worktree', 'add', '--quiet', 'tree');
    await project.run(['run', 'hello', '-i', 'who=ana'], { cwd: 'tree' });
    expect(project.has('tree/.reprise/state')).toBe(false);
    expect(parseLines((await project.run(['list', '--json'])).stdout)).toHaveLength(2);
    expect(git(join(project.root, 'tree'), 'status', '--porcelain')).toBe('');
    expect(project.read('.git/info/exclude').match(/^\.reprise\/.*$/gm)).toHaveLength(1);
  });

  it('can be set by a flag or an environment variable', async () => {
    const project = createProject({ files });
    await project.run(['run', 'hello', '-q', '-i', 'who=ana', '--state-dir', 'a']);
    await project.run(['run', 'hello', '-q', '-i', 'who=ana'], { env: { REPRISE_STATE_DIR: 'b' } });
    expect([project.has('a/reprise.db'), project.has('b/reprise.db'), project.has('.reprise/state')]).toEqual(
      [true, true, false],
    );
    expect(parseLines((await project.run(['list', '--json', '--state-dir', 'a'])).stdout)).toHaveLength(1);
  });

  it('is in every suggested command if it was set by the flag, and only then', async () => {
    const project = createProject({
      files: { 'approval.yaml': 'steps:\n  - { id: ok, approve: "Continue?" }\n' },
    });
    const suffixes = (text: string) =>
      [
        ...project.stable(text).matchAll(/reprise \w+ <run>( ok)?(?: --choice \w+)?( --state-dir '[^']*')?/g),
      ].map(found => found[2]);
    const flag = ['--state-dir', 'my state'];
    const run = await project.run(['run', 'approval.yaml', ...flag]);
    const [{ id } = { id: '' }] = parseLines<{ id: string }>(
      (await project.run(['list', '--json', ...flag])).stdout,
    );
    const shown = await project.run(['show', ...flag]);
    const data = await project.run(['show', '--json', ...flag]);
    const unknown = await project.run(['approve', id, '--choice', 'maybe', ...flag]);
    const answered = await project.run(['approve', id, ...flag]);
    const twice = await project.run(['approve', id, ...flag]);
    const cancelled = await project.run(['cancel', id, ...flag]);
    const ended = await project.run(['cancel', id, ...flag]);
    const suffix = " --state-dir 'my state'";
    expect(suffixes(run.stderr)).toEqual([suffix, suffix, suffix]);
    expect(suffixes(shown.stdout)).toEqual([suffix, suffix]);
    for (const { stdout, stderr } of [data, unknown, answered, twice, cancelled, ended])
      expect(suffixes(stdout + stderr)).toEqual([suffix]);
    const other = await project.run(['run', 'approval.yaml'], { env: { REPRISE_STATE_DIR: 'b' } });
    expect(suffixes(other.stderr)).toEqual([undefined, undefined, undefined]);
  });

  it('is in the hint of a refused resume', async () => {
    const failing = 'steps:\n  - { id: a, run: "true" }\n  - { id: b, needs: [a], run: "false" }\n';
    const { project } = await runInline({
      files: { 'w.yaml': failing },
      args: ['run', 'w.yaml', '--state-dir', 'a'],
    });
    project.write({ 'w.yaml': failing.replace('"true"', 'ls') });
    const { stderr } = await project.run(['resume', '--state-dir', 'a']);
    expect(project.stable(stderr)).toContain('reprise resume <run> --rerun-changed --state-dir a\n');
  });
});
