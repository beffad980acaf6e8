import { describe, expect, it } from 'vitest';
import { stateOf } from '../support/state.ts';
import { type AgentProject, agentProject, fanOutOf, toOutcome } from './agent-project.ts';
import { type RunningCli, until } from './run-inline.ts';

/** Waits until `$MARKS.together` copies have started, which proves that they run in parallel. */
const reporter = `
echo "begin $REPRISE_WORKER $(pwd) $$" >> "$MARKS"
until [ "$(grep -c '^begin' "$MARKS")" -ge "$(cat "$MARKS.together")" ]; do sleep 0.02; done
echo "by copy $REPRISE_WORKER" > same.txt
printf '%s' "$prompt" > "$MARKS.prompt$REPRISE_WORKER"
echo "end $REPRISE_WORKER" >> "$MARKS"
printf '{"type":"result","text":"reported","output":{"pwd":"%s","variable":"%s","pid":%s}}\\n' "$(pwd -P)" "$PWD" $$
`;

describe('a step with `concurrency: 3`', () => {
  it('runs three copies in parallel, with the same prompt and each in its own workspace', async () => {
    const project = agentProject({
      agents: { reporter },
      files: {
        'w.yaml': `
inputs: { what: { type: string } }
steps:
  - { id: fix, agent: reporter, prompt: "Rename \${{ inputs.what }}, änd\\n  nothing else \\n", concurrency: 3, output: { type: object } }
`,
      },
    });
    project.tell('together', '3');
    const before = project.checkout();
    const outcome = await project.outcome(['run', 'w.yaml', '-i', 'what=$HOME "here"\nnow']);
    expect(outcome).toMatchObject({ code: 0, status: 'completed' });
    const fan = fanOutOf(outcome, 'fix');
    expect(fan).toMatchObject({ total_workers: 3, success_count: 3, fail_count: 0, cancelled_count: 0 });
    // No copy ended before all three had started.
    expect(project.marks().findIndex(mark => mark.startsWith('end'))).toBe(3);
    const workspaces = fan.worker_results.map(({ index, status, output, workspace, branch }) => {
      expect(status).toBe('completed');
      expect(output).toMatchObject({ pwd: workspace, variable: workspace });
      expect(workspace).toBe(`${project.root}/.reprise/workspaces/w/${outcome.run}/fix/worker_${index}`);
      expect(project.git('show', `${branch}:same.txt`)).toBe(`by copy ${index}`);
      return workspace;
    });
    expect(new Set(workspaces).size).toBe(3);
    expect(new Set(fan.worker_results.map(({ output }) => output?.['pid'])).size).toBe(3);
    for (const index of [0, 1, 2])
      expect(project.told(`prompt${index}`)).toBe('Rename $HOME "here"\nnow, änd\n  nothing else \n');
    expect(project.checkout()).toBe(before);
  });
});

describe('`concurrency`', () => {
  it('makes an ordinary step if it is 0, 1 or absent', async () => {
    const project = agentProject({
      agents: { reporter },
      files: Object.fromEntries(
        ['concurrency: 0', 'concurrency: 1', 'optional: false'].map((line, index) => [
          `w${index}.yaml`,
          `steps:\n  - { id: fix, agent: reporter, prompt: x, output: { type: object }, ${line} }\n`,
        ]),
      ),
    });
    project.tell('together', '0');
    for (const index of [0, 1, 2]) {
      const { run, output } = await project.outcome(['run', `w${index}.yaml`]);
      const folder = `${project.root}/.reprise/workspaces/w${index}/${run}/fix`;
      expect(output).toMatchObject({ fix: { pwd: folder } });
      expect(project.git('branch', '--list', `reprise/w${index}/*`)).toContain(
        `reprise/w${index}/${run}/fix`,
      );
    }
    expect(project.marks().every(mark => /^(begin|end) /.test(mark) && !/^\w+ \d/.test(mark))).toBe(true);
  });

  it.each([
    ['concurrency: -1', 'must be at least 0'],
    ['concurrency: "x"', 'must be a number'],
    ['concurrency: 1.5', 'must be a whole number'],
    ['concurrency: 2, strategy: { matrix: { a: [1] } }', 'cannot be combined'],
  ])('refuses { %s } with its position, before anything runs', async (line, message) => {
    const project = agentProject({
      agents: { reporter },
      files: { 'w.yaml': `steps:\n  - { id: fix, agent: reporter, prompt: x, ${line} }\n` },
    });
    const { code, stderr } = await project.cli(['run', 'w.yaml']);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).toMatch(/w\.yaml:2:\d+/);
    expect(project.marks()).toEqual([]);
    expect(project.has(`${stateOf(project.root)}/reprise.db`)).toBe(false);
  });

  it('starts no more of 20 copies at a time than `max_concurrent_workers` allows', async () => {
    const project = agentProject({
      agents: {
        // A copy counts the running copies once there are five, or once the last of the 20 has started.
        count: `
touch "$MARKS.running.$$"; echo >> "$MARKS.started"
running() { ls "$MARKS".running.* | wc -l; }
until [ "$(running)" -ge 5 ] || [ "$(wc -l < "$MARKS.started")" -ge 20 ]; do sleep 0.02; done
running >> "$MARKS"
rm "$MARKS.running.$$"`,
      },
      config: 'runtime: { max_concurrent_workers: 5 }',
      files: { 'w.yaml': 'steps:\n  - { id: fix, agent: count, prompt: x, concurrency: 20 }\n' },
    });
    const outcome = await project.outcome(['run', 'w.yaml']);
    expect(fanOutOf(outcome, 'fix')).toMatchObject({ total_workers: 20, success_count: 20 });
    const running = project.marks().map(Number);
    expect(running).toHaveLength(20);
    expect(Math.max(...running)).toBe(5);
  });
});

/** Copy n does what line n of `$MARKS.plan` says. */
const planned = `
echo "begin $REPRISE_WORKER" >> "$MARKS"
echo "work of $REPRISE_WORKER" > "work.txt"
case "$(sed -n "$((REPRISE_WORKER + 1))p" "$MARKS.plan")" in
  fail) until [ -e "$MARKS.fail" ]; do sleep 0.02; done; echo "no good" >&2; exit 3;;
  hang) sleep 1000;;
esac
echo "end $REPRISE_WORKER" >> "$MARKS"
echo "did $REPRISE_WORKER"
`;
const kinds = [
  ['`concurrency`', 'concurrency: 4, strategy: { fail-fast: FAST }'],
  ['a matrix', 'strategy: { fail-fast: FAST, matrix: { k: [a, b, c, d] } }'],
] as const;

const plannedProject = (rule: string, fast: boolean) =>
  agentProject({
    agents: { planned },
    files: {
      'w.yaml': `steps:\n  - { id: fix, agent: planned, prompt: x, ${rule.replace('FAST', String(fast))} }\n`,
    },
  });
const started = (project: AgentProject) => project.marks().filter(mark => mark.startsWith('begin')).length;
const finished = ({ stdout }: RunningCli) => stdout.split('"step.completed"').length - 1;
const ends = (fan: ReturnType<typeof fanOutOf>) =>
  fan.worker_results.map(({ status, output, error }) => [status, output?.['text'] ?? error?.code]);
const completed = [0, 1, 2, 3].map(index => ['completed', `did ${index}`]);

describe.each(kinds)('a fan-out by %s', (_, rule) => {
  it('cancels the remaining copies on the first failure, and reports results in order', async () => {
    const project = plannedProject(rule, true);
    project.tell('plan', 'go\nfail\nhang\nhang\n');
    const run = project.begin(['run', 'w.yaml', '--json']);
    await until(() => started(project) === 4 && finished(run) === 1);
    project.tell('fail', '');
    const outcome = toOutcome(await run.ended);
    expect(outcome).toMatchObject({ code: 1, status: 'failed', error: { code: 'AGENT_FAILED' } });
    const fan = fanOutOf(outcome, 'fix');
    expect(ends(fan)).toEqual([
      ['completed', 'did 0'],
      ['failed', 'AGENT_FAILED'],
      ['cancelled', undefined],
      ['cancelled', undefined],
    ]);
    expect(fan).toMatchObject({ total_workers: 4, success_count: 1, fail_count: 1, cancelled_count: 2 });
    for (const { index, branch } of fan.worker_results)
      expect(project.git('show', `${branch}:work.txt`)).toBe(`work of ${index}`);
    expect(project.leftRunning()).toEqual([]);
  });

  it('keeps the results of other copies without fail-fast, and a resume reruns only the failed copy', async () => {
    const project = plannedProject(rule, false);
    project.tell('plan', 'go\nfail\ngo\ngo\n');
    project.tell('fail', '');
    const outcome = await project.outcome(['run', 'w.yaml']);
    expect(outcome.code).toBe(1);
    expect(fanOutOf(outcome, 'fix')).toMatchObject({ success_count: 3, fail_count: 1, cancelled_count: 0 });
    project.tell('plan', '');
    const resumed = await project.outcome(['resume']);
    expect(resumed.code).toBe(0);
    expect(ends(fanOutOf(resumed, 'fix'))).toEqual(completed);
    expect(
      project
        .marks()
        .filter(mark => mark.startsWith('begin'))
        .toSorted(),
    ).toEqual(['begin 0', 'begin 1', 'begin 1', 'begin 2', 'begin 3']);
  });

  it('gives the same results after kill -9 and a resume, without rerunning finished copies', async () => {
    const project = plannedProject(rule, true);
    project.tell('plan', 'go\ngo\nhang\nhang\n');
    const run = project.begin(['run', 'w.yaml', '--json']);
    await until(() => started(project) === 4 && finished(run) === 2);
    run.kill('SIGKILL');
    await run.ended;
    project.tell('plan', '');
    const resumed = await project.outcome(['resume']);
    expect(resumed.code).toBe(0);
    expect(ends(fanOutOf(resumed, 'fix'))).toEqual(completed);
    expect(
      project
        .marks()
        .filter(mark => mark.startsWith('end'))
        .toSorted(),
    ).toEqual(['end 0', 'end 1', 'end 2', 'end 3']);
    expect(project.marks().filter(mark => /^begin [01]$/.test(mark))).toHaveLength(2);
    expect(project.leftRunning()).toEqual([]);
  });
});

it('keeps the work on Ctrl-C in a fan-out, leaves no process behind, and can be resumed', async () => {
  const project = plannedProject('concurrency: 4', true);
  project.tell('plan', 'go\ngo\nhang\nhang\n');
  const before = project.checkout();
  const run = project.begin(['run', 'w.yaml', '--json']);
  await until(() => started(project) === 4 && finished(run) === 2);
  run.kill('SIGINT');
  const outcome = toOutcome(await run.ended);
  expect(outcome).toMatchObject({ code: 130, status: 'suspended' });
  expect(project.leftRunning()).toEqual([]);
  expect(project.checkout()).toBe(before);
  project.tell('plan', '');
  const resumed = await project.outcome(['resume']);
  expect(resumed.code).toBe(0);
  expect(ends(fanOutOf(resumed, 'fix'))).toEqual(completed);
  expect(project.marks().filter(mark => /^begin [01]$/.test(mark))).toHaveLength(2);
});
