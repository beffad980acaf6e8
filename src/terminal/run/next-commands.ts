import type { Waiting } from '../../engine/run/result.ts';
import { safeLine } from '../../view/safe-text.ts';
import { displayWidth } from '../text.ts';
import { approveCommand, shellWord } from '../words.ts';

/** How a run stands when the summary is written; `interrupted`: its process went away without a word. */
export type Standing = 'completed' | 'failed' | 'cancelled' | 'suspended' | 'interrupted' | 'running';

interface Next {
  readonly command: string;
  readonly why: string;
}

const mostAnswers = 3;

export interface NextOptions {
  readonly standing: Standing;
  readonly runId: string;
  readonly waiting: readonly Waiting[];
  readonly columns: number;
  /** Steps and workers with finished work that has not landed. */
  readonly landable?: readonly string[] | undefined;
  /** A step or worker that failed, and whose agent tells why. */
  readonly failedAgent?: string | undefined;
  /** What every command ends with, such as ` --state-dir x`; nothing by default. */
  readonly commandSuffix?: string | undefined;
}

/** What to type next, with the reason beside it where there is room for all of them. */
export function nextLines(options: NextOptions): readonly string[] {
  const { standing, runId, waiting, columns, commandSuffix = '' } = options;
  const work = workCommands(options);
  const next = [
    ...(standing === 'completed' ? work : logCommands(options)),
    ...nextCommands(standing, runId, waiting),
    ...(standing === 'completed' ? [] : work),
  ];
  const lines = next.map(
    ({ command }, index) => `${index === 0 ? 'next:' : '     '} ${command}${commandSuffix}`,
  );
  const width = Math.max(...lines.map(displayWidth)) + 2;
  const explained = lines.map((line, index) => `${line.padEnd(width)}${next[index]?.why ?? ''}`);
  return explained.every(line => displayWidth(line) <= columns) ? explained : lines;
}

function nextCommands(standing: Standing, runId: string, waiting: readonly Waiting[]): readonly Next[] {
  const history = { command: `reprise history ${runId}`, why: 'everything that happened' };
  const resume = (why: string) => ({ command: `reprise resume ${runId}`, why });
  switch (standing) {
    case 'completed':
      return [{ command: `reprise show ${runId}`, why: 'the run and its output' }, history];
    case 'failed':
      return [resume('once it is mended; finished steps are kept'), history];
    case 'cancelled':
      return [resume('go on where it stopped'), history];
    case 'interrupted':
      return [resume('go on; finished steps are kept'), history];
    case 'running':
      return [
        { command: `reprise show ${runId}`, why: 'look again' },
        { command: `reprise cancel ${runId}`, why: 'stop it' },
      ];
    case 'suspended':
      return [...answers(runId, waiting), resume('then go on')];
  }
}

/** What came of it, and how to have it. */
function workCommands({ standing, runId, landable = [] }: NextOptions): readonly Next[] {
  const [first, ...others] = landable;
  if (first === undefined || standing === 'running') return [];
  const step = shellWord(first);
  return [
    { command: `reprise diff ${runId} ${step}`, why: `what ${first} changed` },
    {
      command: `reprise land ${runId} ${step}`,
      why: others.length === 0 ? 'have it on your branch' : whichOne(others),
    },
  ];
}

const whichOne = ({ length }: readonly unknown[]): string =>
  length === 1 ? 'or the other one' : `or one of ${length} others`;

const logCommands = ({ standing, runId, failedAgent }: NextOptions): readonly Next[] =>
  standing === 'failed' && failedAgent !== undefined
    ? [{ command: `reprise logs ${runId} ${shellWord(failedAgent)}`, why: 'what its agent did' }]
    : [];

const answers = (runId: string, waiting: readonly Waiting[]): readonly Next[] =>
  waiting.flatMap(wait => answerTo(runId, wait)).slice(0, mostAnswers);

function answerTo(runId: string, wait: Waiting): readonly Next[] {
  switch (wait.on) {
    case 'approval':
      return [{ command: approveCommand({ runId, ...wait }), why: choicesText(wait.choices) }];
    case 'signal':
      return [
        {
          command: `reprise signal ${runId} ${shellWord(wait.signal)}`,
          why: `what ${safeLine(wait.step)} waits for`,
        },
      ];
    case 'timer':
      return [];
  }
}

const choicesText = (choices: readonly string[]): string =>
  `your answer: ${choices.map(safeLine).join(' or ')}`;
