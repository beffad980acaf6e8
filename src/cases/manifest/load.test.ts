import { describe, expect, it } from 'vitest';
import { groupsOf } from './fields.ts';
import { load } from './test-support.ts';

const concurrentWorkers = `
[multi]
steps = [
  { name = "init", command = "init", stdin = "y" },
  { name = "setup", command = "shell", script = "create-issues.sh" },
  { name = "worker_a", command = "worker", concurrent_group = "workers" },
  { name = "worker_b", command = "worker", concurrent_group = "workers" },
]
[files]
"README.md" = "Helo, world!\\n"
[scripts]
"create-issues.sh" = '''...'''
`;

const namesOf = (groups: ReturnType<typeof groupsOf>) => groups.map(group => group.map(({ name }) => name));

describe('a case file', () => {
  it('has commands, files and scripts', () => {
    const manifest = load(concurrentWorkers);
    expect(manifest).toMatchObject({
      name: 'small',
      form: 'multi',
      fidelity: 'sessions',
      live: [],
      timeline: false,
      showThinking: false,
      files: { 'README.md': 'Helo, world!\n' },
      scripts: { 'create-issues.sh': '...' },
    });
    expect(manifest.steps[0]).toEqual({
      name: 'init',
      command: 'init',
      args: [],
      stdin: 'y',
      env: {},
      concurrentGroup: undefined,
      script: undefined,
      expect: { exit: undefined, files: {}, main: undefined, output: [], notOutput: [] },
      timeoutMs: undefined,
      killAfter: undefined,
      sessions: undefined,
      position: { file: 'small.toml', line: 4, column: 3 },
    });
    expect(namesOf(groupsOf(manifest))).toEqual([['init'], ['setup'], ['worker_a', 'worker_b']]);
  });

  it('means the same with [[multi.steps]] as with the inline form', () => {
    const inTables = load(`
      [[multi.steps]]
      name = "init"
      command = "init"
      stdin = "y"
      [[multi.steps]]
      name = "setup"
      command = "shell"
      script = "create-issues.sh"
      [[multi.steps]]
      name = "worker_a"
      command = "worker"
      concurrent_group = "workers"
      [[multi.steps]]
      name = "worker_b"
      command = "worker"
      concurrent_group = "workers"
      [scripts]
      "create-issues.sh" = "..."
    `);
    const withoutPositions = ({ steps }: typeof inTables) => steps.map(({ position: _, ...step }) => step);
    expect(withoutPositions(inTables)).toEqual(withoutPositions(load(concurrentWorkers)));
  });

  it('supports every key of a command', () => {
    const { steps } = load(`
      [[multi.steps]]
      name = "fix"
      command = "run"
      args = ["fix", "--input", "issue=7"]
      env.LANG = "C"
      timeout = "1m30s"
      kill_after = { event = "step.completed", step = "build", nth = 2 }
      [multi.steps.expect]
      exit = 1
      main = ["base", "fix it"]
      output = ["landed", "/run .* failed/i"]
      not_output = "secret"
      [multi.steps.expect.files]
      "a.txt" = ""
      "b.txt" = { contains = "fixed" }
      "c.txt" = { absent = true }
      [[multi.steps]]
      name = "again"
      command = "resume"
      args = "run-1 --note 'it is \\"done\\"'"
      timeout = 2.5
      kill_after = { effect = "store.append", nth = 3 }
      [[multi.steps]]
      name = "third"
      command = "resume"
      kill_after = "git.land"
    `);
    expect(steps[0]).toMatchObject({
      args: ['fix', '--input', 'issue=7'],
      env: { LANG: 'C' },
      timeoutMs: 90_000,
      killAfter: { kind: 'event', event: 'step.completed', step: 'build', nth: 2 },
      expect: {
        exit: 1,
        main: ['base', 'fix it'],
        output: ['landed', '/run .* failed/i'],
        notOutput: ['secret'],
        files: {
          'a.txt': { kind: 'exact', content: '' },
          'b.txt': { kind: 'contains', text: 'fixed' },
          'c.txt': { kind: 'absent' },
        },
      },
    });
    expect(steps[1]).toMatchObject({
      args: ['run-1', '--note', 'it is "done"'],
      timeoutMs: 2500,
      killAfter: { kind: 'effect', effect: 'store.append', nth: 3 },
    });
    expect(steps[2]?.killAfter).toEqual({ kind: 'effect', effect: 'git.land', nth: 1 });
  });

  it('supports every key of the whole case', () => {
    const manifest = load(`
      description = "Two lanes, one main."
      recorded_by = "make tapes"
      show_thinking = true
      model = "opus"
      fidelity = "tape"
      live = ["verify", "checks"]
      env = { LANG = "C" }
      timeline = true
      run.args = ["fix"]
      [base]
      commit = "${'a'.repeat(40)}"
      pack = "blobs/base.pack"
      shallow = ["${'b'.repeat(40)}"]
      [[invariants]]
      name = "one commit"
      run = "test $(git rev-list --count main) = 2"
      [[invariants]]
      name = "tidy"
      command = "git diff --exit-code"
      [explore]
      policy = "pct"
      schedules = 100
      for = "10s"
      seed = 7
      crashes = true
      faults = ["git-lock"]
    `);
    expect(manifest).toMatchObject({
      form: 'run',
      description: 'Two lanes, one main.',
      recordedBy: 'make tapes',
      showThinking: true,
      model: 'opus',
      fidelity: 'tape',
      live: ['verify', 'checks'],
      env: { LANG: 'C' },
      timeline: true,
      base: { commit: 'a'.repeat(40), branch: 'main', pack: 'blobs/base.pack', shallow: ['b'.repeat(40)] },
      invariants: [
        { name: 'one commit', check: { kind: 'run', script: 'test $(git rev-list --count main) = 2' } },
        { name: 'tidy', check: { kind: 'command', argv: ['git', 'diff', '--exit-code'] } },
      ],
      explore: { policy: 'pct', schedules: 100, forMs: 10_000, seed: 7, crashes: true, faults: ['git-lock'] },
    });
  });

  it('names a single command after itself by default', () => {
    expect(load('[run]\n').steps).toMatchObject([{ name: 'run', command: 'run' }]);
    expect(load('[run]\ncommand = "status"\n').steps).toMatchObject([{ name: 'status', command: 'status' }]);
    expect(load('[run]\nname = "first"\n').steps).toMatchObject([{ name: 'first', command: 'run' }]);
  });

  it('accepts both notations of trigger actions', () => {
    const { triggers } = load(`
      run.args = []
      [[triggers]]
      step = "run"
      label = "main_head_sha"
      action = "exit"
      [[triggers]]
      step = "run"
      label = "keyboard.ask"
      nth = 2
      fields = { question = "Land it?", choices = ["yes", "no"], wait = { ms = 1 } }
      action = "input"
      input = "y"
      [[triggers]]
      step = "run"
      label = "clock.now"
      action = { signal = "SIGINT" }
      [[triggers]]
      step = "run"
      label = "clock.now"
      action = { advance_clock = "1h" }
      [[triggers]]
      step = "run"
      label = "clock.now"
      action = "advance_clock"
      advance_clock = 30
    `);
    expect(triggers.map(({ action }) => action)).toEqual([
      { kind: 'exit' },
      { kind: 'input', text: 'y' },
      { kind: 'signal', signal: 'SIGINT' },
      { kind: 'advance_clock', ms: 3_600_000 },
      { kind: 'advance_clock', ms: 30_000 },
    ]);
    expect(triggers[0]).toMatchObject({ step: 'run', label: 'main_head_sha', fields: {}, nth: 1 });
    expect(triggers[1]).toMatchObject({
      nth: 2,
      fields: { question: 'Land it?', choices: ['yes', 'no'], wait: { ms: 1 } },
    });
  });

  it('runs the workers of a `[worker_test]` in parallel, each with its own sessions', () => {
    const manifest = load(`
      [worker_test]
      num_workers = 2
      [[worker_test.workers]]
      name = "worker-a"
      sessions = [{ role = "dispatch", vcr = "worker_basic_dispatch_a" }, { role = "agent", vcr = "worker_basic_agent_a" }]
      [[worker_test.workers]]
      name = "worker-b"
      sessions = []
    `);
    expect(manifest.form).toBe('worker_test');
    expect(manifest.steps).toMatchObject([
      {
        name: 'worker-a',
        command: 'worker',
        sessions: [
          { role: 'dispatch', vcr: 'worker_basic_dispatch_a' },
          { role: 'agent', vcr: 'worker_basic_agent_a' },
        ],
      },
      { name: 'worker-b', command: 'worker', sessions: [] },
    ]);
    expect(namesOf(groupsOf(manifest))).toEqual([['worker-a', 'worker-b']]);
  });

  it('puts the arguments of a worker after the common ones', () => {
    const { steps } = load(`
      [worker_test]
      num_workers = 2
      command = "run"
      workflow = "fix"
      args = "--plain"
      env = { LANG = "C", A = "all" }
      timeout = "1m"
      workers = [
        { name = "a", sessions = [], args = ["--input", "file=a.txt"], env = { A = "own" }, timeout = 5 },
        { name = "b", sessions = [] },
      ]
    `);
    expect(steps).toMatchObject([
      {
        command: 'run',
        args: ['fix', '--plain', '--input', 'file=a.txt'],
        env: { LANG: 'C', A: 'own' },
        timeoutMs: 5000,
      },
      { command: 'run', args: ['fix', '--plain'], env: { LANG: 'C', A: 'all' }, timeoutMs: 60_000 },
    ]);
  });
});

describe('groupsOf', () => {
  it('starts a new group when a name recurs after other commands', () => {
    const grouped = (...steps: readonly (readonly [name: string, group?: string])[]) => {
      const lines = steps.map(([name, group]) =>
        group
          ? `{ name = "${name}", command = "run", concurrent_group = "${group}" }`
          : `{ name = "${name}", command = "run" }`,
      );
      return namesOf(groupsOf(load(`multi.steps = [${lines.join(', ')}]`)));
    };
    expect(grouped(['a', 'x'], ['b', 'x'], ['c'], ['d', 'x'], ['e', 'x'])).toEqual([
      ['a', 'b'],
      ['c'],
      ['d', 'e'],
    ]);
    expect(grouped(['a', 'x'], ['b', 'y'], ['c', 'x'])).toEqual([['a'], ['b'], ['c']]);
    expect(grouped(['a'], ['b'])).toEqual([['a'], ['b']]);
    expect(grouped(['a', 'x'], ['b', 'x'], ['c', 'x'])).toEqual([['a', 'b', 'c']]);
  });
});
