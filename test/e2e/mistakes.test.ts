import { describe, expect, it } from 'vitest';
import { stateOf } from '../support/state.ts';
import { createProject, runInline } from './run-inline.ts';

const files = {
  '.reprise/workflows/deploy.yaml':
    'inputs: { env: { type: choice, options: [qa, live], required: true }, n: { type: number } }\nsteps:\n  - { id: a, run: "touch ran" }\n',
  '.reprise/workflows/test.yaml': 'steps:\n  - { id: a, run: "true" }\n',
};

/** Text that a mistaken command prints on standard error. Checks that it exits with 2 and writes nothing. */
const mistakes = async (args: readonly string[], more: Readonly<Record<string, string>> = {}) => {
  const { code, stdout, stderr, project } = await runInline({ files: { ...files, ...more }, args });
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(project.has(stateOf(project.root))).toBe(false);
  expect(project.has('ran')).toBe(false);
  return project.stable(stderr);
};

describe('a mistaken command exits with 2 and says what to type', () => {
  it('refuses an exploration of no duration', async () => {
    expect(await mistakes(['explore', 'some-case', '--for', '0s'])).toContain('Expected a duration above 0');
  });

  it('suggests a workflow if the name is unknown', async () => {
    expect(await mistakes(['run', 'deplyo'])).toMatchInlineSnapshot(`
      "error[WORKFLOW_NOT_FOUND]: cannot find workflow deplyo
        hint: did you mean: reprise run deploy
      "
    `);
    expect(await mistakes(['run', 'something-else'])).toMatchInlineSnapshot(`
      "error[WORKFLOW_NOT_FOUND]: cannot find workflow something-else
        hint: workflows of this project: deploy, test
      "
    `);
    expect(await mistakes(['run', './none.yaml'])).toMatchInlineSnapshot(`
      "error[WORKFLOW_NOT_FOUND]: cannot find file ./none.yaml
        hint: workflows of this project: deploy, test
      "
    `);
  });

  it('refuses an unknown command, flag or argument', async () => {
    expect(await mistakes(['rnu'])).toMatchInlineSnapshot(`
      "error[USAGE]: unknown command 'rnu'
      (Did you mean run?)
        hint: see all commands: reprise --help
      "
    `);
    expect(await mistakes(['run', 'deploy', '--max-concurent', '3'])).toMatchInlineSnapshot(`
      "error[USAGE]: unknown option '--max-concurent'
      (Did you mean --max-concurrent?)
        hint: see its options: reprise run --help
      "
    `);
    expect(await mistakes(['run', 'deploy', '--max-concurrent', 'many'])).toMatchInlineSnapshot(`
      "error[USAGE]: option '--max-concurrent <n>' argument 'many' is invalid. Expected a whole number, 1 or greater.
        hint: see its options: reprise run --help
      "
    `);
    expect(await mistakes(['cancel'])).toMatchInlineSnapshot(`
      "error[USAGE]: missing required argument 'run'
        hint: see its options: reprise cancel --help
      "
    `);
    expect(await mistakes(['run', 'deploy', 'twice'])).toMatchInlineSnapshot(`
      "error[USAGE]: too many arguments for 'run'. Expected 1 argument but got 2.
        hint: see its options: reprise run --help
      "
    `);
  });

  it('refuses a missing, unknown or malformed input', async () => {
    expect(await mistakes(['run', 'deploy'])).toMatchInlineSnapshot(`
      "error[INPUT_INVALID]: \`env\` is required
        hint: start it with: reprise run deploy --input env=<qa|live>
      "
    `);
    expect(
      await mistakes(['run', 'deploy', '-i', 'env=prod', '-i', 'n=many', '-i', 'evn=qa']),
    ).toMatchInlineSnapshot(`
      "error[INPUT_INVALID]: unknown input \`evn\`; did you mean \`env\`?
      \`env\` must be one of qa, live, not "prod"
      \`n\` must be a number, not "many"
        hint: start it with: reprise run deploy --input env=<qa|live>
      "
    `);
    expect(await mistakes(['run', 'deploy', '-i', 'env'])).toMatchInlineSnapshot(`
      "error[USAGE]: --input needs name=value, not "env"
        hint: write --input name=value
      "
    `);
    expect(await mistakes(['run', 'deploy', '--input-json', '[1]'])).toMatchInlineSnapshot(`
      "error[USAGE]: --input-json must be a JSON object
        hint: for example {"issue": 7}
      "
    `);
    expect(await mistakes(['run', 'deploy', '--input-file', 'none.json'])).toMatchInlineSnapshot(`
      "error[USAGE]: --input-file none.json cannot be read
        hint: check the path; it is relative to the current folder
      "
    `);
  });

  it('reports every problem of a definition', async () => {
    const bad =
      'steps:\n  - { id: a, rnu: "true" }\n  - { id: b, needs: [c], run: "echo ${{ steps.a.outputs.x }}" }\n';
    expect(await mistakes(['run', 'bad.yaml'], { 'bad.yaml': bad })).toMatchInlineSnapshot(`
      "error[DEFINITION_INVALID]: unknown key \`rnu\`
        at bad.yaml:2:14
         2 |  - { id: a, rnu: "true" }
           |  ^^^
        hint: did you mean \`run\`?

      error[DEFINITION_INVALID]: unknown step \`c\`
        at bad.yaml:3:22
         3 |  - { id: b, needs: [c], run: "echo \${{ steps.a.outputs.x }}" }
           |  ^
        hint: did you mean \`a\`?

      error[DEFINITION_INVALID]: \`a\` is not in the \`needs\` of step \`b\`, so it may not have run yet
        at bad.yaml:3:41
         3 |  - { id: b, needs: [c], run: "echo \${{ steps.a.outputs.x }}" }
           |  ^^^^^^^
        hint: add it: \`needs: [c, a]\`

      3 problems
      "
    `);
  });

  it('refuses a module that cannot be loaded or exports no workflow', async () => {
    expect(
      await mistakes(['run', 'bad.mjs'], { 'bad.mjs': 'throw new TypeError("not today");\n' }),
    ).toMatchInlineSnapshot(`
      "error[DEFINITION_INVALID]: cannot load bad.mjs: TypeError: not today
        hint: see the stack trace: REPRISE_DEBUG=1 reprise validate bad.mjs
      "
    `);
    expect(await mistakes(['run', 'bad.mjs'], { 'bad.mjs': 'export const x = 1;\n' })).toMatchInlineSnapshot(`
      "error[DEFINITION_INVALID]: bad.mjs exports no workflow
        hint: export the result of workflow(...): export default workflow('name', { steps })
      "
    `);
    expect(await mistakes(['run', 'bad.mjs'], { 'bad.mjs': 'import "reprise";\n' })).toMatchInlineSnapshot(`
      "error[DEFINITION_INVALID]: cannot load bad.mjs: Cannot find package 'reprise' imported from <root>/bad.mjs
        hint: install it in the project: npm install --save-dev reprise
      "
    `);
  });

  it('refuses settings that are out of range', async () => {
    const config = { 'reprise.yaml': 'runtime: { max_concurrent_workers: 0 }\n' };
    expect(await mistakes(['run', 'test'], config)).toMatchInlineSnapshot(`
      "error[CONFIG_INVALID]: reprise.yaml:1:36: \`runtime.max_concurrent_workers\` must be at least 1, not \`0\`
         1 | runtime: { max_concurrent_workers: 0 }
           |  ^
      "
    `);
    const { code, stderr } = await runInline({
      files,
      args: ['run', 'test'],
      env: { REPRISE_MAX_CONCURRENT_WORKERS: 'all' },
    });
    expect({ code, stderr }).toMatchInlineSnapshot(`
      {
        "code": 2,
        "stderr": "error[CONFIG_INVALID]: REPRISE_MAX_CONCURRENT_WORKERS must be a whole number, 1 or greater, not "all"
        hint: for example REPRISE_MAX_CONCURRENT_WORKERS=4
      ",
      }
    `);
  });

  it('says how to start a run if there are none', async () => {
    expect(await mistakes(['resume'])).toMatchInlineSnapshot(`
      "error[RUN_NOT_FOUND]: this project has no runs yet
        hint: start a workflow: reprise run <workflow>
      "
    `);
    expect(await mistakes(['show', 'abc'])).toMatchInlineSnapshot(`
      "error[RUN_NOT_FOUND]: this project has no runs yet
        hint: start a workflow: reprise run <workflow>
      "
    `);
  });

  it('refuses an unknown or empty run id', async () => {
    const project = createProject({ files });
    await project.run(['run', 'test']);
    for (const command of ['resume', 'replay', 'history', 'show', 'cancel', 'approve', 'signal']) {
      const { code, stderr } = await project.run([command, 'zzz!', ...(command === 'signal' ? ['go'] : [])]);
      expect({ code, stderr }).toEqual({
        code: 2,
        stderr: 'error[RUN_NOT_FOUND]: cannot find run zzz!\n  hint: list all runs: reprise list\n',
      });
    }
    const { code, stderr } = await project.run(['show', '']);
    expect({ code, stderr }).toMatchInlineSnapshot(`
      {
        "code": 2,
        "stderr": "error[USAGE]: the id of the run is empty
        hint: list all runs: reprise list
      ",
      }
    `);
  });
});

describe('reprise', () => {
  it('prints help on standard output with --help, and on standard error without a command', async () => {
    const asked = await runInline({ args: ['--help'] });
    expect(asked).toMatchObject({ code: 0, stderr: '' });
    expect(asked.stdout).toContain('reprise run deploy');
    const nothing = await runInline({ args: [] });
    expect(nothing).toMatchObject({ code: 2, stdout: '' });
    expect(nothing.stderr).toContain('Usage: reprise');
    const runHelp = await runInline({ args: ['run', '--help'] });
    expect(runHelp.stdout).toMatchInlineSnapshot(`
      "Usage: reprise run [options] [workflow]

      Run a workflow or a single agent.

      Options:
        --max-concurrent <n>      maximum number of steps that run in parallel
        --wait                    do not exit while the run waits for an approval or a
                                  signal
        --json                    print NDJSON on standard output: every event, then
                                  the result
        -q, --quiet               print no progress
        --verbose                 print the output of steps and the actions of agents
        -i, --input <name=value>  input of the workflow (repeatable)
        --input-json <object>     inputs as a JSON object
        --input-file <file>       inputs from a JSON file; - reads standard input
        --agent <name>            run this agent instead of a workflow
        --prompt <text>           prompt for the agent; - reads standard input
        --prompt-file <file>      prompt from a file; - reads standard input
        --concurrency <n>         number of parallel copies, each in its own workspace
        --check <command>         command that must pass for the work to count
                                  (repeatable)
        --permissions <preset>    what the agent may do (default: its definition)
                                  (choices: "read-only", "edit", "full")
        --state-dir <folder>      folder of the store and logs (default:
                                  $REPRISE_STATE_DIR, or .git/reprise)
        -h, --help                show this help

      Examples:
        reprise run deploy                            run .reprise/workflows/deploy.yaml (or .yml, .mjs, .js, .ts)
        reprise run ./ci.yaml -i env=qa               run a file with an input
        reprise run flows.mjs#nightly                 run one of several workflows that a module exports
        reprise run --agent claude --prompt "Fix #7"  run one agent in its own workspace
        reprise run deploy --json                     print events as NDJSON, then {"type":"result",...}
      "
    `);
  });

  it('prints its version', async () => {
    for (const flag of ['--version', '-v']) {
      expect(await runInline({ args: [flag] })).toMatchObject({ code: 0, stdout: '0.1.0\n', stderr: '' });
    }
  });
});
