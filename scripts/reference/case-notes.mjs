const sameAsSteps = ['expect', 'kill_after'];

/** What is said about each table of a case file, and which of its rows are shown. */
export const sections = {
  multi: {
    heading: '`[multi]`',
    prefix: 'multi.',
    text: 'Several steps. They run one after another, but neighbours with the same `concurrent_group` run at the same time; a group that comes again after something else is another one. `[[multi.steps]]` may be written instead of the list.',
  },
  run: {
    heading: '`[run]`',
    prefix: 'run.',
    text: 'One command: `run`, unless `command` says otherwise. `expect` and `kill_after` are as in `[multi]`.',
    leaveOut: sameAsSteps.map(key => `run.${key}`),
  },
  worker_test: {
    heading: '`[worker_test]`',
    prefix: 'worker_test.',
    text: 'Workers at the same time, each with sessions that were recorded before or written by hand, served in order. Git, scripts and landing are real; there are no tapes. A session file is looked for in `sessions/` of the case, in the case, and in the folder above. `expect` and `kill_after` are as in `[multi]`.',
    leaveOut: sameAsSteps.map(key => `worker_test.workers[].${key}`),
  },
  triggers: {
    heading: '`[[triggers]]`',
    prefix: 'triggers[].',
    text: 'Something that happens when a step reaches an effect. One that never fires fails the case.',
  },
  claims: {
    heading: '`[[claims]]`',
    prefix: 'claims[].',
    text: 'A task that somebody has, or had, who is not in the case: workers see it as they would see that of any other. Written by `reprise capture`.',
  },
  base: {
    heading: '`[base]`',
    prefix: 'base.',
    text: 'What a captured case begins from, in place of a first commit of `files`. Written by `reprise capture`.',
  },
  invariants: {
    heading: '`[[invariants]]`',
    prefix: 'invariants[].',
    text: 'Rules of your own for every order that is explored. Each is run in the repository, on real git, once all steps have come to their end.',
  },
  explore: {
    heading: '`[explore]`',
    prefix: 'explore.',
    text: 'Orders other than the recorded one are played by `reprise test` after the case itself; see [find the race](../guide/find-the-race.md). `reprise explore` keeps to it as well, but for what is typed: `--for` or `--schedules` takes the place of both limits.',
  },
};

/** One small example for each table. */
export const examples = {
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
