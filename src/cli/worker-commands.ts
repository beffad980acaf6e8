import { amount, wholeNumber } from './option-values.ts';
import type { Registry } from './program.ts';

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
