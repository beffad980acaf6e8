import type { CommandIo } from '../../project/host.ts';

/** Answers to questions, one a line, from a person or from whoever wrote them to standard input. */
export interface Answers {
  /** Puts the question. Nothing more to read means no; `undefined` if the command was interrupted. */
  confirm(question: string): Promise<boolean | undefined>;
}

/** Whether anybody could answer: a person who is there, or an input that is not a terminal, be it empty. */
export const canBeAsked = ({ ask, isTTY }: CommandIo): boolean => ask !== undefined || !isTTY.stdin;

export function answersFrom({ stdin, err, isTTY, interrupt }: CommandIo): Answers {
  const lines = linesOf(stdin);
  return {
    async confirm(question) {
      err(`${question} [y/N] `);
      const line = await untilAborted(lines.next(), interrupt);
      if (line === undefined) {
        err('\n');
        return undefined;
      }
      const answer = line.done ? '' : line.value.trim();
      // What is typed at a terminal stands there already.
      if (!isTTY.stdin || line.done) err(`${answer}\n`);
      return /^y(es)?$/i.test(answer);
    },
  };
}

async function* linesOf(stdin: CommandIo['stdin']): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of stdin) {
    rest += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') yield rest;
  return undefined;
}

function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const stop = () => resolve(undefined);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
