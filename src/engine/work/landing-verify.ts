import { join } from 'node:path';
import type { Verdict, Verification } from '../../git/landing/prepare.ts';
import type { VerifyOrder } from '../../git/orders.ts';
import type { Environment, Observer } from '../environment.ts';
import { attemptFileName } from '../log-files.ts';
import { performShell } from '../step/commands.ts';

export interface VerifyContext {
  readonly environment: Environment;
  readonly observe: Observer;
  readonly order: VerifyOrder;
  readonly signal: AbortSignal;
}

/** Where what would land is checked out. */
export const scratchOf = (
  { stateDir }: Pick<Environment, 'stateDir'>,
  { runId, unit }: Pick<VerifyOrder, 'runId' | 'unit'>,
): string => join(stateDir, 'landing', runId, attemptFileName(unit));

/** What has to pass, as the project and the workflow say. */
export const verificationOf = (context: VerifyContext): Verification => ({
  path: scratchOf(context.environment, context.order),
  include: context.environment.worktrees.include,
  run: ({ path }) => verifyAt(context, path),
});

/** The checkout is new, so it is made ready first. */
async function verifyAt(
  { environment, observe, order, signal }: VerifyContext,
  path: string,
): Promise<Verdict> {
  const { runId, lease, unit } = order;
  const setup = environment.worktrees.setup.map(script => ({ script, shell: 'bash' as const, env: {} }));
  const env = { ...order.env, REPRISE_WORKSPACE: path };
  let output = '';
  for (const [index, command] of [...setup, order.command].entries()) {
    const what = index < setup.length ? `verify-setup-${index + 1}` : 'verify';
    const { end } = await performShell(
      { environment, observe },
      { runId, lease, unit, what, command, folder: path, env },
      signal,
    );
    signal.throwIfAborted();
    if (end.kind === 'cancelled') return { passed: false, output: 'cancelled' };
    output = end.tail;
    if (end.kind === 'failed') return { passed: false, output: end.error.message };
  }
  return { passed: true, output };
}
