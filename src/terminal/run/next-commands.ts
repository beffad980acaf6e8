import type { RunResult, Waiting } from '../../engine/index.ts';
import { safeLine } from '../../view/index.ts';
import { displayWidth } from '../text.ts';
import { approveCommand, shellWord } from '../words.ts';

/** Status of a run in the summary. `interrupted` means that its process died without recording an end. */
export type ShownRunStatus = RunResult['status'] | 'interrupted' | 'running';

interface NextCommand {
  readonly command: string;
  readonly why: string;
}

const mostAnswers = 3;

export interface NextOptions {
  readonly status: ShownRunStatus;
  readonly runId: string;
  readonly waiting: readonly Waiting[];
  readonly columns: number;
  /** Steps and copies with finished work that has not landed. */
  readonly landable?: readonly string[] | undefined;
  /** Failed step or copy that ran an agent. */
  readonly failedAgent?: string | undefined;
  /** Suffix of every command, such as ` --state-dir x`. Defaults to nothing. */
  readonly commandSuffix?: string | undefined;
}

/** Commands to type next, with explanations if all of them fit. */
export function nextLines(options: NextOptions): readonly string[] {
  const { status, runId, waiting, columns, commandSuffix = '' } = options;
  const work = workCommands(options);
  const next = [
    ...(status === 'completed' ? work : logCommands(options)),
    ...nextCommands(status, runId, waiting),
    ...(status === 'completed' ? [] : work),
  ];
  const lines = next.map(
    ({ command }, index) => `${index === 0 ? 'next:' : '     '} ${command}${commandSuffix}`,
  );
  const width = Math.max(...lines.map(displayWidth)) + 2;
  const explained = lines.map((line, index) => `${line.padEnd(width)}${next[index]?.why ?? ''}`);
  return explained.every(line => displayWidth(line) <= columns) ? explained : lines;
}

function nextCommands(
  status: ShownRunStatus,
  runId: string,
  waiting: readonly Waiting[],
): readonly NextCommand[] {
  const history = { command: `reprise history ${runId}`, why: 'show all events' };
  const resume = (why: string) => ({ command: `reprise resume ${runId}`, why });
  switch (status) {
    case 'completed':
      return [{ command: `reprise show ${runId}`, why: 'show the run and its output' }, history];
    case 'failed':
      return [resume('after fixing it; finished steps are kept'), history];
    case 'cancelled':
      return [resume('continue where it stopped'), history];
    case 'suspended':
      return [resume('continue where it stopped, in the same sessions'), history];
    case 'interrupted':
      return [resume('continue; finished steps are kept'), history];
    case 'running':
      return [
        { command: `reprise show ${runId}`, why: 'check again' },
        { command: `reprise cancel ${runId}`, why: 'stop it' },
      ];
    case 'waiting':
      return [...answers(runId, waiting), resume('then continue')];
  }
}

/** Commands that show and land the work of the run. */
function workCommands({ status, runId, landable = [] }: NextOptions): readonly NextCommand[] {
  const [first, ...others] = landable;
  if (first === undefined || status === 'running') return [];
  const step = shellWord(first);
  return [
    { command: `reprise diff ${runId} ${step}`, why: `show the changes of ${first}` },
    {
      command: `reprise land ${runId} ${step}`,
      why: others.length === 0 ? 'land it on your branch' : orOthers(others),
    },
  ];
}

const orOthers = ({ length }: readonly unknown[]): string =>
  length === 1 ? 'or land the other one' : `or land one of ${length} others`;

const logCommands = ({ status, runId, failedAgent }: NextOptions): readonly NextCommand[] =>
  status === 'failed' && failedAgent !== undefined
    ? [{ command: `reprise logs ${runId} ${shellWord(failedAgent)}`, why: 'show what the agent did' }]
    : [];

const answers = (runId: string, waiting: readonly Waiting[]): readonly NextCommand[] =>
  waiting.flatMap(wait => answerTo(runId, wait)).slice(0, mostAnswers);

function answerTo(runId: string, wait: Waiting): readonly NextCommand[] {
  switch (wait.on) {
    case 'approval':
      return [{ command: approveCommand({ runId, ...wait }), why: choicesText(wait.choices) }];
    case 'signal':
      return [
        {
          command: `reprise signal ${runId} ${shellWord(wait.signal)}`,
          why: `the signal that ${safeLine(wait.step)} needs`,
        },
      ];
    case 'timer':
      return [];
  }
}

const choicesText = (choices: readonly string[]): string => `answer: ${choices.map(safeLine).join(' or ')}`;
