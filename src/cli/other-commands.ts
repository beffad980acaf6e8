import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Option } from 'commander';
import type { TestContext } from '../cases/index.ts';
import { faultKinds } from '../cases/manifest/index.ts';
import { policyNames } from '../effects/explore/index.ts';
import { type CommandIo, findUpwards } from '../project/index.ts';
import type { Registry } from './program.ts';
import { amount, durationAboveZero, oneOrMore, wholeNumber } from './run-commands.ts';
import { cliFile, packageFolder, version } from './version.ts';

/** Registers the commands for workers and their tasks. */
export function registerWorkerCommands({ io, add }: Registry): void {
  add('worker', async (_, options) => {
    const { workerCommand } = await import('../commands/worker.ts');
    return workerCommand({ io }, options);
  })
    .summary('run workers that pick up tasks')
    .description('Run workers that pick up tasks, run an agent on each and land the results.')
    .option('--name <name>', 'name of the worker (default: worker-1, worker-2, ...)')
    .option('--branch <branch>', 'branch to work on and land on (default: main)')
    .option('--agent <agent>', 'agent for tasks that name none: one of the project, claude or codex')
    .option('--workers <n>', 'number of workers in this process', wholeNumber(1))
    .option('--once', 'exit after one task')
    .option('--until-idle', 'exit when no task is ready and no worker is busy')
    .option('--max-tasks <n>', 'maximum number of tasks of all workers together', wholeNumber(1))
    .option('--budget <usd>', 'stop when all workers together have spent this much', amount)
    .option('--json', 'print NDJSON on standard output: worker activity and run events')
    .option('-q, --quiet', 'only print what needs attention')
    .addHelpText(
      'after',
      `
Examples:
  reprise worker                         run one worker until Ctrl-C
  reprise worker --workers 3             run three workers in parallel
  reprise worker --until-idle --json     run in CI
  reprise worker --agent codex --once    do one task with Codex`,
    );

  add('status', async (_, options) => {
    const { statusCommand } = await import('../commands/status.ts');
    return statusCommand({ io }, options);
  })
    .summary('show workers, tasks and locks')
    .description('Show workers, tasks, locks and leftovers.')
    .option('-w, --watch', 'keep the view up to date until q or Ctrl-C; the workers keep running')
    .addOption(new Option('--all', 'show every project of the repository').conflicts('watch'))
    .option('--branch <branch>', 'branch to read tasks from (default: the branch of the workers)')
    .option('--json', 'print one JSON object; with --watch, one per line for every change');

  add('tasks [action] [id]', async ([action, id], options) => {
    const { tasksCommand } = await import('../commands/tasks.ts');
    return tasksCommand({ io }, { ...options, action, id });
  })
    .summary('list, show, claim or release tasks')
    .description('List tasks with their status, or show, claim or release one.')
    .option('--by <name>', 'name to claim or release with (default: the current user)')
    .option('--all', 'list the tasks of every project of the repository')
    .option('--branch <branch>', 'branch to read tasks from (default: the branch of the workers)')
    .option('--json', 'print one JSON object per line; with show, a single object')
    .addHelpText(
      'after',
      `
Examples:
  reprise tasks                          list all tasks with their status
  reprise tasks show fix-readme          show everything known about one task
  reprise tasks claim fix-readme         do it yourself, so that no worker takes it
  reprise tasks release fix-readme       return it to the queue, or retry it`,
    );
}

/** Registers the commands that inspect runs. */
export function registerViewCommands({ io, add }: Registry): void {
  add('list', async (_, options) => {
    const { listCommand } = await import('../commands/list.ts');
    return listCommand({ io }, options);
  })
    .alias('ls')
    .summary('list runs')
    .description('List the runs of the project, newest first.')
    .option('--json', 'print one JSON object per line')
    .option('-n, --limit <n>', 'maximum number of runs', wholeNumber(1))
    .option('--workflow <name>', 'only list runs of this workflow')
    .option('--all', 'list the runs of every project of the repository');

  add('show [run]', async ([run], options) => {
    const { showCommand } = await import('../commands/show.ts');
    return showCommand({ io }, { ...options, run });
  })
    .summary('show the status of a run')
    .description('Show the status of a run (default: the newest), its steps and what to type next.')
    .option('--json', 'print one JSON object');

  add('logs [run] [step]', async ([run, step], options) => {
    const { logsCommand } = await import('../commands/logs.ts');
    return logsCommand({ io }, { ...options, run, step });
  })
    .summary('print the logs of a run')
    .description('Print the logs of a run (default: the newest), of a step, or of a copy of it (step:0).')
    .option('--raw', 'include the messages of the agent protocols')
    .option('-f, --follow', 'keep printing until the run ends; Ctrl-C does not stop the run')
    .option('--json', 'print one JSON object per line: {step, worker, attempt, line}');

  add('diff <run> <step>', async ([run = '', step = ''], options) => {
    const { diffCommand } = await import('../commands/diff.ts');
    return diffCommand({ io }, { ...options, run, step });
  })
    .summary('print the changes of a step')
    .description('Print the changes that a step, or a copy of it (step:0), made in its workspace.')
    .option('--stat', 'only list the changed files and how many lines changed');

  add('history [run]', async ([run], options) => {
    const { historyCommand } = await import('../commands/show.ts');
    return historyCommand({ io }, { ...options, run });
  })
    .summary('print the events of a run')
    .description(
      'Print the events of a run (default: the newest) in an order that does not depend on timing.',
    )
    .option('--raw', 'print them in the order in which they happened')
    .option('--json', 'print one event per line')
    .option('--digest', 'only print digests, which are equal for runs that did the same work');
}

/** Registers the commands that turn runs into tests, and run these tests. */
export function registerTestCommands({ io, add, program }: Registry): void {
  add('test [names...]', async (names, options) => {
    const { testCommand } = await import('../cases/test-command.ts');
    return testCommand(
      { io, context: testContext(io, program) },
      { ...options, names: names.filter(name => name !== undefined) },
    );
  })
    .summary('replay test cases')
    .description('Replay test cases (cases/**) from their tapes, without calling any agent.')
    .option('--record', 'run the cases for real and save what happens as their tapes')
    .option('--step <name>', 'with --record: record only this command of the case and replay the others')
    .option('--accept', 'update snapshots')
    .addOption(
      new Option('--reporter <name>', 'output format')
        .choices(['default', 'json', 'junit', 'github'])
        .default('default'),
    );

  add('explore [cases...]', async (names, options) => {
    const { exploreCommand } = await import('../cases/explore/command.ts');
    return exploreCommand(
      { io, context: testContext(io, program) },
      {
        ...options,
        names: names.filter(name => name !== undefined),
        forMs: options['for'] as number | undefined,
      },
    );
  })
    .summary('search test cases for races')
    .description('Replay test cases in new orders, and with crashes, to find races.')
    .addOption(new Option('--policy <name>', 'how to choose orders').choices(policyNames))
    .option('--for <duration>', 'maximum time per case (default: 60s)', durationAboveZero)
    .option('--schedules <n>', 'maximum number of orders per case', wholeNumber(1))
    .option('--seed <n>', 'random seed; the same seed tries the same orders', wholeNumber(0))
    .option('--crashes', 'kill and restart commands at every point, beginning with the recorded order')
    .option('--crash-points', 'only try the crash points of the recorded order')
    .option(
      '--faults [kinds]',
      `inject failures: all kinds, or some of ${faultKinds.join(',')}`,
      oneOrMore(faultKinds),
    )
    .option('--check-keys', 'check that effects only change state that they declare')
    .option('--twice', 'run every order twice and compare the outcomes')
    .addOption(
      new Option('--on <world>', 'only use the in-memory model, or only real git').choices(['memory', 'git']),
    )
    .option('--race <name>', 'replay a race that was found before')
    .option('--dry-run', 'do not save the races that are found')
    .option('--json', 'print the results as JSON, one line per case');

  add('capture <run> <name>', async ([run = '', name = ''], options) => {
    const { captureCommand } = await import('../cases/capture/capture.ts');
    return captureCommand({ io, context: testContext(io, program) }, { ...options, run, name });
  })
    .summary('turn a run into a test case')
    .description('Turn a run into a test case, cases/<name>, that replays without any agent.')
    .option('--force', 'replace an existing case of that name');
}

/** Context for test cases, which run the commands of this program in this process. */
export function testContext(
  { env, cwd, interrupt }: Pick<CommandIo, 'env' | 'cwd'> & { readonly interrupt?: AbortSignal },
  program: TestContext['program'],
): TestContext {
  const installed = findUpwards(cwd, folder => existsSync(join(folder, 'node_modules')));
  return {
    program,
    env,
    interrupt,
    cwd,
    version: version(),
    packages: {
      installed: installed === undefined ? undefined : join(installed, 'node_modules'),
      reprise: packageFolder(),
    },
  };
}

/** Registers the commands for definitions, cleanup and setup. */
export function registerToolCommands({ io, add }: Registry): void {
  add('init', async (_, options) => {
    const { initCommand } = await import('../commands/init/init.ts');
    return initCommand({ io }, options);
  })
    .summary('set up a repository')
    .description('Set up a repository: reprise.yaml, agents, an example workflow and an example task.')
    .addOption(
      new Option('--agent <program>', 'program that runs the agents (default: claude)').choices([
        'claude',
        'codex',
        'gemini',
        'opencode',
      ]),
    )
    .option('--yes', 'overwrite files that differ without asking')
    .option('--dry-run', 'only print what would be created')
    .option('--json', 'print one JSON object and ask no questions');

  add('graph <workflow>', async ([workflow = ''], options) => {
    const { graphCommand } = await import('../commands/graph.ts');
    return graphCommand({ io }, { ...options, workflow });
  })
    .summary('draw the steps of a workflow')
    .description('Draw the steps of a workflow.')
    .option('--mermaid', 'print a Mermaid flowchart')
    .option('--json', 'print one JSON object')
    .option('--run <run>', 'show the status of each step in this run');

  add('validate [targets...]', async (targets, options) => {
    const { validateCommand } = await import('../commands/validate.ts');
    return validateCommand({ io }, { ...options, targets: targets.filter(target => target !== undefined) });
  })
    .summary('check workflows and settings')
    .description(
      'Check workflows without running them (default: all YAML workflows of the project, and reprise.yaml). Naming a TypeScript workflow loads its code.',
    )
    .option('--json', 'print one JSON object per file');

  add('gc', async (_, options) => {
    const { gcCommand } = await import('../commands/gc.ts');
    return gcCommand({ io }, options);
  })
    .summary('remove leftovers of ended runs')
    .description('Remove workspaces and branches of runs that have ended. Keeps work that has not landed.')
    .option('--dry-run', 'only print what would be removed')
    .option('--json', 'print one JSON object');

  add('doctor', async (_, options) => {
    const { doctorCommand } = await import('../commands/doctor.ts');
    return doctorCommand({ io }, options);
  })
    .summary('check the installation')
    .description('Check the programs, agents and settings that runs need, and say how to fix problems.')
    .option('--json', 'print one JSON object per line');

  add('demo [name]', async ([name], options) => {
    const { demoCommand } = await import('../commands/demo/demo.ts');
    return demoCommand({ io }, { ...options, name, cli: cliFile() });
  })
    .summary('watch a demo')
    .description('Watch two workers, or five parallel agents (fan-out), survive a crash.')
    .option('--clean', 'remove the demo project at the end');
}
