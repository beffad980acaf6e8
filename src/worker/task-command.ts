import { createHash, randomUUID } from 'node:crypto';
import { RepriseError } from '../core/errors.ts';
import type { Environment } from '../engine/environment.ts';
import { startProcess } from '../process/start.ts';

const mostCharacters = 16 * 1024 * 1024;
const mostMs = 60_000;

type Place = Pick<Environment, 'projectRoot' | 'env'>;

/**
 * What the command prints that lists the tasks of a project. Nothing that it started is left when this returns. Throws
 * CONFIG_INVALID if it fails, and CANCELLED.
 */
export async function printedBy(
  { projectRoot, env }: Place,
  command: string,
  ...signals: readonly AbortSignal[]
): Promise<string> {
  throwIfAborted(signals);
  const lines: string[] = [];
  let characters = 0;
  let saidLast = '';
  let why: string | undefined;
  const stop = (reason: string) => {
    why ??= reason;
    void child.stop({ graceMs: 0 });
  };
  const child = startProcess({
    argv: ['sh', '-c', command],
    cwd: projectRoot,
    env,
    marker: { REPRISE_INCARNATION: randomUUID() },
    onLine: (stream, line) => {
      if (stream === 'stderr') saidLast = line.trim() === '' ? saidLast : line;
      else if (characters <= mostCharacters) lines.push(line);
      characters += line.length;
      if (characters > mostCharacters) stop('it prints more than 16 MB');
    },
  });
  const patience = setTimeout(() => stop('it takes longer than a minute'), mostMs);
  const cancel = () => stop('it was cancelled');
  for (const signal of signals) signal.addEventListener('abort', cancel, { once: true });
  try {
    const end = await child.ended;
    await child.stop({ graceMs: 0 });
    throwIfAborted(signals);
    if (end.kind === 'exited' && end.exitCode === 0 && why === undefined) return lines.join('\n');
    throw failed(command, why ?? (saidLast || howItEnded(end)));
  } finally {
    clearTimeout(patience);
    for (const signal of signals) signal.removeEventListener('abort', cancel);
  }
}

function throwIfAborted(signals: readonly AbortSignal[]): void {
  if (signals.some(({ aborted }) => aborted))
    throw new RepriseError('CANCELLED', 'the command that lists the tasks was ended');
}

function howItEnded(end: Awaited<ReturnType<typeof startProcess>['ended']>): string {
  switch (end.kind) {
    case 'exited':
      return `it exited with code ${end.exitCode}`;
    case 'signalled':
      return `it was ended by ${end.signal}`;
    case 'couldNotStart':
      return end.error.message;
  }
}

const failed = (command: string, why: string): RepriseError =>
  new RepriseError('CONFIG_INVALID', `the command that lists the tasks failed: ${command}\n${why}`, {
    hint: 'run it by hand, and mend `tasks.command` in reprise.yaml',
  });

/** By which it is noticed that something else was printed. */
export const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');
