import { wholeNumber } from './option-values.ts';
import type { Registry } from './program.ts';

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
