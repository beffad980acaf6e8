import { type Command, Option } from 'commander';
import type { RunCommandOptions } from '../commands/run.ts';
import { collect, duration, wholeNumber } from './option-values.ts';
import type { Registry } from './program.ts';

/** The commands that bring runs forward. */
export function registerRunCommands({ io, add }: Registry): void {
  withDisplay(
    add('run [workflow]', async ([workflow], options) => {
      const { runCommand } = await import('../commands/run.ts');
      return runCommand({ io }, { ...options, workflow } as RunCommandOptions);
    }),
  )
    .description('Start a workflow, or a single agent, and see it through.')
    .option('-i, --input <name=value>', 'one input; repeat it for more', collect)
    .option('--input-json <object>', 'inputs as a JSON object')
    .option('--input-file <file>', 'inputs from a JSON file; - reads standard input')
    .option('--agent <name>', 'run this agent, without a workflow')
    .option('--prompt <text>', 'what the agent is to do; - reads standard input')
    .option('--prompt-file <file>', 'the same from a file')
    .option(
      '--concurrency <n>',
      'so many copies of the agent, each in a workspace of its own',
      wholeNumber(0),
    )
    .option('--check <command>', 'must pass before the work counts; repeat it for more', collect)
    .addOption(
      new Option('--permissions <preset>', 'what the agent may do (default: as it is defined)').choices([
        'read-only',
        'edit',
        'full',
      ]),
    )
    .addHelpText(
      'after',
      examples([
        ['reprise run deploy', '.reprise/workflows/deploy.yaml (or .yml, .mjs, .js, .ts)'],
        ['reprise run ./ci.yaml -i env=qa', 'a file, with an input'],
        ['reprise run flows.mjs#nightly', 'one of several workflows that a module exports'],
        ['reprise run --agent claude --prompt "Fix #7"', 'no workflow: one agent in a workspace of its own'],
        ['reprise run deploy --json', 'events as NDJSON, then {"type":"result",...}'],
      ]),
    );

  withDisplay(
    add('resume [run]', async ([run], options) => {
      const { resumeCommand } = await import('../commands/resume.ts');
      return resumeCommand({ io }, { ...options, run });
    }),
  )
    .description('Go on with a run where it stopped (by default the newest). Finished steps are kept.')
    .option('--from <step>', 'fork a new run that runs this step, and what comes after it, again')
    .option('--rerun-changed', 'run steps again whose definition has changed, and what depends on them')
    .addHelpText(
      'after',
      examples([
        ['reprise resume', 'the newest run'],
        ['reprise resume 7kq', 'the run whose id starts with 7kq'],
        ['reprise resume 7kq --from test', 'a new run that keeps what came before test'],
      ]),
    );

  add('replay [run]', async ([run], options) => {
    const { replayCommand } = await import('../commands/resume.ts');
    return replayCommand({ io }, { ...options, run });
  })
    .description('Go through the history of a run and give its output. Runs nothing, writes nothing.')
    .option('--json', 'the recorded events as NDJSON, then the result');

  add('cancel <run>', async ([run = ''], { timeout, ...options }) => {
    const { cancelCommand } = await import('../commands/cancel.ts');
    return cancelCommand({ io }, { ...options, run, timeoutMs: timeout as number | undefined });
  })
    .description('End a run as cancelled, whoever is running it.')
    .option('--reason <text>', 'recorded in the history')
    .option('--no-wait', 'do not stay until it has ended')
    .option('--timeout <duration>', 'how long to stay at most (default: 30s)', duration);

  add('land [run] [step]', async ([run, step], options) => {
    const { landCommand } = await import('../commands/land.ts');
    return landCommand({ io }, { ...options, run, step });
  })
    .description('Bring the finished work of a step or a worker (step:0) onto a branch.')
    .option('--onto <branch>', 'the branch (default: the one that the run began from)')
    .option('--verify <command>', 'must pass on the result before anything moves')
    .option('--json', 'as one JSON object');

  add('approve <run> [step]', async ([run = '', step], options) => {
    const { approveCommand } = await import('../commands/approve.ts');
    return approveCommand({ io }, { ...options, run, step });
  })
    .description('Answer a gate. The step may be left out if only one waits.')
    .option('--choice <choice>', 'the answer (default: approve)')
    .option('--reject', 'short for --choice reject')
    .option('--comment <text>', 'recorded with the answer')
    .option('--by <name>', 'who answers (default: $USER)');

  add('signal <run> <name> [payload]', async ([run = '', name = '', payload], options) => {
    const { signalCommand } = await import('../commands/approve.ts');
    return signalCommand({ io }, { ...options, run, name, payload });
  })
    .description('Send a signal to a run. The payload is JSON, or else text.')
    .addHelpText(
      'after',
      examples([[`reprise signal 7kq deployed '{"version": 3}'`, 'for ctx.waitForSignal("deployed")']]),
    );
}

function withDisplay(command: Command): Command {
  return command
    .option('--max-concurrent <n>', 'how many steps may run at once', wholeNumber(1))
    .option('--wait', 'stay while it waits for a person or a signal')
    .option('--json', 'NDJSON on standard output: every event, then the result')
    .option('-q, --quiet', 'show nothing while it runs')
    .option('--verbose', 'show what steps print');
}

function examples(lines: readonly (readonly [command: string, meaning: string])[]): string {
  const width = Math.max(...lines.map(([command]) => command.length));
  return `\nExamples:\n${lines.map(([command, meaning]) => `  ${command.padEnd(width)}  ${meaning}`).join('\n')}`;
}
