import type { Waiting } from '../engine/result.ts';
import { safeLine } from './safe-text.ts';
import { displayWidth } from './width.ts';
import { approveCommand, shellWord } from './words.ts';

/** How a run stands when the summary is written; `interrupted`: its process went away without a word. */
export type Standing = 'completed' | 'failed' | 'cancelled' | 'suspended' | 'interrupted' | 'running';

interface Next {
  readonly command: string;
  readonly why: string;
}

const mostAnswers = 3;

/** What to type next, with the reason beside it. */
export function nextLines(standing: Standing, runId: string, waiting: readonly Waiting[]): readonly string[] {
  const next = nextCommands(standing, runId, waiting);
  const width = Math.max(...next.map(({ command }) => displayWidth(command)));
  return next.map(({ command, why }, index) => {
    const label = index === 0 ? 'next:' : '     ';
    return `${label} ${command}${' '.repeat(width - displayWidth(command))}  ${why}`;
  });
}

function nextCommands(standing: Standing, runId: string, waiting: readonly Waiting[]): readonly Next[] {
  const history = { command: `reprise history ${runId}`, why: 'everything that happened' };
  const resume = (why: string) => ({ command: `reprise resume ${runId}`, why });
  switch (standing) {
    case 'completed':
      return [{ command: `reprise show ${runId}`, why: 'the run and its output' }, history];
    case 'failed':
      return [resume('once the cause is mended: finished steps are kept'), history];
    case 'cancelled':
      return [resume('go on where it stopped'), history];
    case 'interrupted':
      return [resume('go on where it stopped: finished steps are kept'), history];
    case 'running':
      return [
        { command: `reprise show ${runId}`, why: 'look again' },
        { command: `reprise cancel ${runId}`, why: 'stop it' },
      ];
    case 'suspended':
      return [...answers(runId, waiting), resume('then go on')];
  }
}

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
