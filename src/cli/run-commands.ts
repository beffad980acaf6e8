import { type Command, InvalidArgumentError, Option } from 'commander';
import type { RunCommandOptions } from '../commands/index.ts';
import { parseDuration } from '../core/index.ts';
import type { Registry } from './program.ts';

/** Registers the commands that start runs and act on them. */
export function registerRunCommands({ io, add }: Registry): void {
  withDisplay(
    add('run [workflow]', async ([workflow], options) => {
      const { runCommand } = await import('../commands/run.ts');
      return runCommand({ io }, { ...options, workflow } as RunCommandOptions);
    }),
  )
    .summary('run a workflow or a single agent')
    .description('Run a workflow or a single agent.')
    .option('-i, --input <name=value>', 'input of the workflow (repeatable)', collect)
    .option('--input-json <object>', 'inputs as a JSON object')
    .option('--input-file <file>', 'inputs from a JSON file; - reads standard input')
    .option('--agent <name>', 'run this agent instead of a workflow')
    .option('--prompt <text>', 'prompt for the agent; - reads standard input')
    .option('--prompt-file <file>', 'prompt from a file; - reads standard input')
    .option('--concurrency <n>', 'number of parallel copies, each in its own workspace', wholeNumber(0))
    .option('--check <command>', 'command that must pass for the work to count (repeatable)', collect)
    .addOption(
      new Option('--permissions <preset>', 'what the agent may do (default: its definition)').choices([
        'read-only',
        'edit',
        'full',
      ]),
    )
    .addHelpText(
      'after',
      examples([
        ['reprise run deploy', 'run .reprise/workflows/deploy.yaml (or .yml, .mjs, .js, .ts)'],
        ['reprise run ./ci.yaml -i env=qa', 'run a file with an input'],
        ['reprise run flows.mjs#nightly', 'run one of several workflows that a module exports'],
        ['reprise run --agent claude --prompt "Fix #7"', 'run one agent in its own workspace'],
        ['reprise run deploy --json', 'print events as NDJSON, then {"type":"result",...}'],
      ]),
    );

  withDisplay(
    add('resume [run]', async ([run], options) => {
      const { resumeCommand } = await import('../commands/resume.ts');
      return resumeCommand({ io }, { ...options, run });
    }),
  )
    .summary('resume a run from where it stopped')
    .description('Resume a run from where it stopped (default: the newest). Finished steps are kept.')
    .option('--from <step>', 'fork a new run that reruns this step and all steps after it')
    .option('--rerun-changed', 'rerun steps whose definition has changed, and all steps after them')
    .addHelpText(
      'after',
      examples([
        ['reprise resume', 'resume the newest run'],
        ['reprise resume 7kq', 'resume the run whose id starts with 7kq'],
        ['reprise resume 7kq --from test', 'start a new run that keeps all steps before test'],
      ]),
    );

  add('replay [run]', async ([run], options) => {
    const { replayCommand } = await import('../commands/resume.ts');
    return replayCommand({ io }, { ...options, run });
  })
    .summary('replay the history of a run')
    .description('Replay the history of a run and print its output. Runs nothing and writes nothing.')
    .option('--json', 'print the recorded events as NDJSON, then the result');

  add('cancel <run>', async ([run = ''], { timeout, ...options }) => {
    const { cancelCommand } = await import('../commands/cancel.ts');
    return cancelCommand({ io }, { ...options, run, timeoutMs: timeout as number | undefined });
  })
    .summary('cancel a run')
    .description('Cancel a run, even if another process is running it.')
    .option('--reason <text>', 'reason to record in the history')
    .option('--no-wait', 'do not wait until the run has ended')
    .option('--timeout <duration>', 'maximum time to wait (default: 30s)', duration);

  add('land [run] [step]', async ([run, step], options) => {
    const { landCommand } = await import('../commands/land.ts');
    return landCommand({ io }, { ...options, run, step });
  })
    .summary('land the work of a step on a branch')
    .description('Land the finished work of a step, or of a copy of it (step:0), on a branch.')
    .option('--onto <branch>', 'target branch (default: the branch that the run started from)')
    .option('--verify <command>', 'command that must pass on the rebased work before the branch moves')
    .option('--json', 'print one JSON object');

  add('approve <run> [step]', async ([run = '', step], options) => {
    const { approveCommand } = await import('../commands/approve.ts');
    return approveCommand({ io }, { ...options, run, step });
  })
    .summary('answer an approval')
    .description(
      'Answer an approval of a run, or of the run of a task. The step can be omitted if only one is waiting.',
    )
    .option('--choice <choice>', 'the answer (default: approve)')
    .option('--reject', 'short for --choice reject')
    .option('--comment <text>', 'comment to record with the answer')
    .option('--by <name>', 'name to record with the answer (default: $USER)');

  add('signal <run> <name> [payload]', async ([run = '', name = '', payload], options) => {
    const { signalCommand } = await import('../commands/approve.ts');
    return signalCommand({ io }, { ...options, run, name, payload });
  })
    .summary('send a signal to a run')
    .description('Send a signal to a run. A payload that is not JSON is sent as text.')
    .addHelpText(
      'after',
      examples([[`reprise signal 7kq deployed '{"version": 3}'`, 'for ctx.waitForSignal("deployed")']]),
    );
}

function withDisplay(command: Command): Command {
  return command
    .option('--max-concurrent <n>', 'maximum number of steps that run in parallel', wholeNumber(1))
    .option('--wait', 'do not exit while the run waits for an approval or a signal')
    .option('--json', 'print NDJSON on standard output: every event, then the result')
    .option('-q, --quiet', 'print no progress')
    .option('--verbose', 'print the output of steps and the actions of agents');
}

function examples(lines: readonly (readonly [command: string, meaning: string])[]): string {
  const width = Math.max(...lines.map(([command]) => command.length));
  return `\nExamples:\n${lines.map(([command, meaning]) => `  ${command.padEnd(width)}  ${meaning}`).join('\n')}`;
}

/** Parser for options that take a whole number of at least `least`. */
export const wholeNumber =
  (least: number) =>
  (text: string): number => {
    if (/^\d+$/.test(text) && Number(text) >= least) return Number(text);
    throw new InvalidArgumentError(`Expected a whole number, ${least} or greater.`);
  };

/** Parses a duration such as `30s` into milliseconds. */
function duration(text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined) return ms;
  throw new InvalidArgumentError('Expected a duration such as 30s or 2m.');
}

/** Like `duration`, for a time in which something must happen. */
export function durationAboveZero(text: string): number {
  const ms = duration(text);
  if (ms > 0) return ms;
  throw new InvalidArgumentError('Expected a duration above 0, such as 30s or 2m.');
}

/** Parses an amount such as `5` or `$2.50` into US dollars. */
export function amount(text: string): number {
  const dollars = Number(text.replace(/^\$/, ''));
  if (text.trim() !== '' && Number.isFinite(dollars) && dollars > 0) return dollars;
  throw new InvalidArgumentError('Expected an amount in US dollars such as 5 or 2.50.');
}

/** Collects the values of a repeatable option. */
const collect = (value: string, previous: readonly string[] = []): readonly string[] => [...previous, value];

/** Parser for options that take a comma-separated list of the given words. */
export const oneOrMore =
  <Word extends string>(words: readonly Word[]) =>
  (text: string): readonly Word[] => {
    const chosen = text.split(',').map(word => word.trim());
    const unknown = chosen.find(word => !words.includes(word as Word));
    if (unknown === undefined) return chosen as Word[];
    throw new InvalidArgumentError(`Expected some of ${words.join(', ')}; got ${unknown}.`);
  };
