import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Option } from 'commander';
import type { TestContext } from '../cases/context.ts';
import { faultKinds } from '../cases/manifest/manifest.ts';
import { policyNames } from '../effects/explore/policies.ts';
import type { CommandIo } from '../project/host.ts';
import { findUpwards } from '../project/project.ts';
import { amount, duration, oneOrMore, wholeNumber } from './option-values.ts';
import type { Registry } from './program.ts';
import { packageFolder, version } from './version.ts';

/** Commands for tasks, and those who work on them. */
export function registerWorkerCommands({ io, add }: Registry): void {
  add('worker', async (_, options) => {
    const { workerCommand } = await import('../commands/worker.ts');
    return workerCommand({ io }, options);
  })
    .description(
      'Take tasks from issues/, have agents work on them, and land what they did, again and again.',
    )
    .option('--name <name>', 'what it is called (default: worker-1 and so on)')
    .option('--branch <branch>', 'what is worked on and landed on (default: main)')
    .option(
      '--agent <agent>',
      'who takes tasks that name nobody: an agent of the project, or claude or codex',
    )
    .option('--workers <n>', 'so many at once in this process', wholeNumber(1))
    .option('--once', 'end after one task')
    .option('--until-idle', 'end when nothing is left to do and nobody is at work')
    .option('--max-tasks <n>', 'end after so many tasks', wholeNumber(1))
    .option('--budget <usd>', 'end when so much has been spent', amount)
    .option('--json', 'NDJSON on standard output: what the worker does, and the events of its runs')
    .option('-q, --quiet', 'say only what somebody has to know')
    .addHelpText(
      'after',
      `
Examples:
  reprise worker                         one worker, until Ctrl-C
  reprise worker --workers 3             three at once
  reprise worker --until-idle --json     in CI
  reprise worker --agent codex --once    one task, with Codex`,
    );

  add('status', async (_, options) => {
    const { statusCommand } = await import('../commands/status.ts');
    return statusCommand({ io }, options);
  })
    .description('Show workers, tasks and locks: who does what, who waits for what, what was left behind.')
    .option('-w, --watch', 'stay, and show what changes; q or Ctrl-C leaves, and stops nothing')
    .option('--branch <branch>', 'whose tasks (default: what workers work on)')
    .option('--json', 'as one JSON object; with --watch, one a line for every change');

  add('tasks [action] [id]', async ([action, id], options) => {
    const { tasksCommand } = await import('../commands/tasks.ts');
    return tasksCommand({ io }, { ...options, action, id });
  })
    .description('List the tasks and how they stand; show one, claim one for yourself, or release one.')
    .option('--by <name>', 'who claims or releases it (default: the current user)')
    .option('--branch <branch>', 'whose tasks (default: what workers work on)')
    .option('--json', 'one object a line; show: as one JSON object')
    .addHelpText(
      'after',
      `
Examples:
  reprise tasks                          all of them, and how they stand
  reprise tasks show fix-readme          everything that is known of one
  reprise tasks claim fix-readme         you do it, so no worker takes it
  reprise tasks release fix-readme       give it back, or have it tried again`,
    );
}

/** The commands that look at runs. */
export function registerViewCommands({ io, add }: Registry): void {
  add('list', async (_, options) => {
    const { listCommand } = await import('../commands/list.ts');
    return listCommand({ io }, options);
  })
    .alias('ls')
    .description('List the runs of the project, newest first.')
    .option('--json', 'one object a line')
    .option('-n, --limit <n>', 'at most so many', wholeNumber(1))
    .option('--workflow <name>', 'only runs of this workflow');

  add('show [run]', async ([run], options) => {
    const { showCommand } = await import('../commands/show.ts');
    return showCommand({ io }, { ...options, run });
  })
    .description('Show where a run stands (by default the newest), who has it, and what to do next.')
    .option('--json', 'as one JSON object');

  add('logs [run] [step]', async ([run, step], options) => {
    const { logsCommand } = await import('../commands/logs.ts');
    return logsCommand({ io }, { ...options, run, step });
  })
    .description(
      'Print what steps printed and agents did (by default of the newest run). A worker is step:0.',
    )
    .option('--raw', 'also what agents said in their own protocol')
    .option('-f, --follow', 'stay until the run ends; leaving does not stop it')
    .option('--json', 'one object a line: {step, worker, attempt, line}');

  add('diff <run> <step>', async ([run = '', step = ''], options) => {
    const { diffCommand } = await import('../commands/diff.ts');
    return diffCommand({ io }, { ...options, run, step });
  })
    .description('Print what a step or a worker (step:0) has changed in its workspace.')
    .option('--stat', 'only which files, and how much');

  add('history [run]', async ([run], options) => {
    const { historyCommand } = await import('../commands/show.ts');
    return historyCommand({ io }, { ...options, run });
  })
    .description(
      'Print the events of a run (by default the newest) in an order that does not depend on timing.',
    )
    .option('--raw', 'as they happened')
    .option('--json', 'one event a line')
    .option('--digest', 'only the digests: equal for runs that did the same');
}

/** The commands that turn runs into tests, and play them. */
export function registerTestCommands({ io, add, program }: Registry): void {
  add('test [names...]', async (names, options) => {
    const { testCommand } = await import('../cases/test-command.ts');
    return testCommand(
      { io, context: testContext(io, program) },
      { ...options, names: names.filter(name => name !== undefined) },
    );
  })
    .description('Play test cases (cases/**) from their tapes: no agent is called, and nothing is paid for.')
    .option('--record', 'play them for real, and keep what happens as their tapes')
    .option('--step <name>', 'with --record: only this step; the others stay as they were recorded')
    .option('--accept', 'take the snapshots as they come out now')
    .addOption(
      new Option('--reporter <name>', 'how results are shown')
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
    .description('Play test cases in orders, and with crashes, that have not happened yet, to find races.')
    .addOption(new Option('--policy <name>', 'how orders are chosen').choices(policyNames))
    .option('--for <duration>', 'how long at most, for each case (default: 60s)', duration)
    .option('--schedules <n>', 'how many orders at most, for each case', wholeNumber(1))
    .option('--seed <n>', 'where chance begins: the same seed gives the same orders', wholeNumber(0))
    .option('--crashes', 'kill steps at every moment, and start them again: in the recorded order first')
    .option('--crash-points', 'only that: every crash of the recorded order, and no other order')
    .option(
      '--faults [kinds]',
      `let things fail: all, or some of ${faultKinds.join(',')}`,
      oneOrMore(faultKinds),
    )
    .option('--check-keys', 'compare what effects change with what they say that they write')
    .option('--twice', 'play every order twice, and compare who could go on at each moment')
    .addOption(
      new Option('--on <world>', 'only in a model in memory, or only on real git').choices(['memory', 'git']),
    )
    .option('--race <name>', 'play a race again that was found before')
    .option('--dry-run', 'keep no file of what is found')
    .option('--json', 'print what came of it as JSON, one line for each case');

  add('capture <run> <name>', async ([run = '', name = ''], options) => {
    const { captureCommand } = await import('../cases/capture/capture.ts');
    return captureCommand({ io, context: testContext(io, program) }, { ...options, run, name });
  })
    .description('Make a test case of a run: cases/<name>, which replays without any agent.')
    .option('--force', 'replace the case of that name');
}

/** What cases are played with: the same program, in this process. */
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

/** The commands around definitions and the installation. */
export function registerToolCommands({ io, add }: Registry): void {
  add('init', async (_, options) => {
    const { initCommand } = await import('../commands/init/init.ts');
    return initCommand({ io }, options);
  })
    .description('Set a repository up: reprise.yaml, agents, and an example of a workflow and of a task.')
    .addOption(
      new Option('--agent <program>', 'which program plays the agents (default: claude)').choices([
        'claude',
        'codex',
        'gemini',
        'opencode',
      ]),
    )
    .option('--yes', 'overwrite what is there and differs, without asking')
    .option('--dry-run', 'only say what would be made')
    .option('--json', 'as one JSON object, without asking');

  add('graph <workflow>', async ([workflow = ''], options) => {
    const { graphCommand } = await import('../commands/graph.ts');
    return graphCommand({ io }, { ...options, workflow });
  })
    .description('Draw the steps of a workflow.')
    .option('--mermaid', 'as a Mermaid flowchart')
    .option('--json', 'as one JSON object')
    .option('--run <run>', 'show where the steps of this run stand');

  add('validate [targets...]', async (targets, options) => {
    const { validateCommand } = await import('../commands/validate.ts');
    return validateCommand({ io }, { ...options, targets: targets.filter(target => target !== undefined) });
  })
    .description('Check workflows (by default all of the project, and reprise.yaml) without running them.')
    .option('--json', 'one object a file');

  add('gc', async (_, options) => {
    const { gcCommand } = await import('../commands/gc.ts');
    return gcCommand({ io }, options);
  })
    .description('Remove workspaces and branches of runs that have ended. Work that has not landed is kept.')
    .option('--dry-run', 'only say what would be removed')
    .option('--json', 'as one JSON object');

  add('doctor', async (_, options) => {
    const { doctorCommand } = await import('../commands/doctor.ts');
    return doctorCommand({ io }, options);
  })
    .description('Check what runs depend on, and say what to do about what is missing.')
    .option('--json', 'one object a line');

  add('demo [name]', async ([name], options) => {
    const { demoCommand } = await import('../commands/demo/demo.ts');
    return demoCommand({ io }, { ...options, name });
  })
    .description('Watch two workers do three tasks, or five agents at once (fan-out), through a crash.')
    .option('--clean', 'remove the folder at the end, instead of leaving it to look around in');
}
