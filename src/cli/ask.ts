import { createInterface } from 'node:readline/promises';
import type { Question } from '../project/host.ts';
import { safeText } from '../view/safe-text.ts';
import type { Stop } from './stop.ts';

export interface Terminal {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  readonly stop: Pick<Stop, 'signal' | 'interrupt'>;
}

/** Asks until one of the choices, or a beginning that only one has, is typed. Nothing, or Ctrl-C: left for later. */
export async function askOnTerminal(
  { step, message, choices }: Question,
  { input, output, stop }: Terminal,
): Promise<string | undefined> {
  const lines = createInterface({ input, output });
  const closing = new AbortController();
  const signal = AbortSignal.any([stop.signal, closing.signal]);
  // A question is never answered once its input has ended.
  lines.once('close', () => closing.abort());
  lines.on('SIGINT', () => {
    stop.interrupt();
    lines.close();
  });
  try {
    output.write(safeText(`\n${step}: ${message}\n`));
    for (;;) {
      const typed = (
        await lines.question(`${safeText(choices.join(' / '))} (empty: later) > `, { signal })
      ).trim();
      if (typed === '') return undefined;
      const fitting = choices.includes(typed) ? [typed] : choices.filter(choice => choice.startsWith(typed));
      if (fitting.length === 1) return fitting[0];
    }
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError') return undefined;
    throw error;
  } finally {
    lines.close();
  }
}
