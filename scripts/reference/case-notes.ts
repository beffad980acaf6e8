interface Section {
  readonly heading: string;
  /** Prefix of its keys in the schema. */
  readonly prefix: string;
  readonly text: string;
  readonly leaveOut?: readonly string[];
}

const sameAsSteps = ['expect', 'kill_after'];

/** Text for each table of a case file, and the rows to leave out. */
export const sections: Readonly<Record<string, Section>> = {
  multi: {
    heading: '`[multi]`',
    prefix: 'multi.',
    text: 'Several commands. They run one after another, except that adjacent commands with the same `concurrent_group` run in parallel. If the same group name appears again after other commands, it is a new group. You can write `[[multi.steps]]` tables instead of the list.',
  },
  run: {
    heading: '`[run]`',
    prefix: 'run.',
    text: 'A single command. `command` defaults to `run`. `expect` and `kill_after` work as in `[multi]`.',
    leaveOut: sameAsSteps.map(key => `run.${key}`),
  },
  worker_test: {
    heading: '`[worker_test]`',
    prefix: 'worker_test.',
    text: 'Several workers in parallel. Each one is served a list of sessions, in order, that were recorded earlier or written by hand. Git, scripts and landings are real; there are no tapes. Session files are looked up in `sessions/` of the case, in the case folder, and in the folder above it. `expect` and `kill_after` work as in `[multi]`.',
    leaveOut: sameAsSteps.map(key => `worker_test.workers[].${key}`),
  },
  triggers: {
    heading: '`[[triggers]]`',
    prefix: 'triggers[].',
    text: 'Actions that happen when a command of the case reaches an effect. A trigger that never fires fails the case.',
  },
  claims: {
    heading: '`[[claims]]`',
    prefix: 'claims[].',
    text: 'Tasks that are, or were, claimed by a worker outside the case. Workers of the case see them like any other claim. Written by `reprise capture`.',
  },
  base: {
    heading: '`[base]`',
    prefix: 'base.',
    text: 'Commit that a captured case starts from, instead of a first commit made from `files`. Written by `reprise capture`.',
  },
  invariants: {
    heading: '`[[invariants]]`',
    prefix: 'invariants[].',
    text: 'Custom checks for every explored schedule. Each one runs in the repository, on real git, after all commands of the case have ended.',
  },
  explore: {
    heading: '`[explore]`',
    prefix: 'explore.',
    text: 'After the case itself, `reprise test` plays schedules that differ from the recorded one; see [find the race](../guide/find-the-race.md). `reprise explore` uses these settings as well, unless an option overrides them: `--for` or `--schedules` replaces both limits.',
  },
};

/** One small example for each table. */
export const examples: Readonly<Record<string, string>> = {
  multi: `
[multi]
steps = [
  { name = "setup", command = "shell", script = "setup.sh" },
  { name = "a", command = "run", args = "fix --input file=a.txt", concurrent_group = "fixes" },
  { name = "b", command = "run", args = ["fix", "--input", "file=b.txt"], concurrent_group = "fixes" },
  { name = "list", command = "list", expect = { output = "/2 .*completed/", files = { "a.txt" = { contains = "Hello" } } } },
]

[scripts]
"setup.sh" = "echo Helo > a.txt"`,
  run: `
[run]
args = ["fix"]
timeout = "1m"
expect = { exit = 1, output = "failed" }`,
  worker_test: `
[worker_test]
num_workers = 1
command = "run"
workflow = "fix"

[[worker_test.workers]]
name = "worker-a"
sessions = [{ role = "coder", vcr = "fix-a" }]`,
  triggers: `
[[triggers]]
step = "run"
label = "session.next"
nth = 2
action = { signal = "SIGINT" }`,
  claims: `
[[claims]]
task = "fix-readme"
state = "held"
by = "worker-2"`,
  base: `
[base]
commit = "8da1c882732f5ba3c6f1238547a32edef75e4966"
branch = "main"
pack = "blobs/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`,
  invariants: `
[[invariants]]
name = "the tests pass"
run = "npm test"`,
  explore: `
[explore]
schedules = 200
seed = 7`,
};
