import { join } from 'node:path';
import { type Landing, land, type Verdict } from '../../git/landing.ts';
import type { Repository } from '../../git/repository.ts';
import type { Lease } from '../../store/port.ts';
import type { ShellCommand } from '../../workflow/model.ts';
import type { Environment, Observer } from '../environment.ts';
import { attemptFileName } from '../log-files.ts';
import type { Unit } from './port.ts';
import { performShell } from './shell.ts';

/** A landing, as data. */
export interface LandingRequest {
  readonly runId: string;
  readonly lease: Lease;
  readonly unit: Unit;
  readonly branch: string;
  readonly onto: string;
  readonly verify?: ShellCommand | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** Without which it may not be landed any more. */
  readonly claim?: { readonly task: string; readonly token: number } | undefined;
}

export interface LandingContext {
  readonly environment: Environment;
  readonly observe: Observer;
  readonly repository: Repository;
  readonly request: LandingRequest;
  readonly signal: AbortSignal;
}

/** Lands a branch; what has to pass is run in a checkout of the result. */
export function performLanding(context: LandingContext): Promise<Landing> {
  const { environment, observe, repository, request, signal } = context;
  const { runId, lease, unit, branch, onto, verify, claim } = request;
  const { stateDir, worktrees, self, store } = environment;
  return land({
    repository,
    owner: { ...self, incarnation: lease.incarnation },
    source: { branch },
    onto,
    signal,
    // Whoever was taken for dead and comes back must not land what somebody else is landing.
    mayLand: async () =>
      (await store.holdsRun(runId, lease)) &&
      (claim === undefined || (await store.claims.isHeld({ ...claim, runId }))),
    onWait: holder =>
      observe({ kind: 'notice', message: `waiting for process ${holder.pid}, which is landing` }),
    ...(verify
      ? {
          verify: {
            path: join(stateDir, 'landing', runId, attemptFileName(unit)),
            include: worktrees.include,
            run: ({ path }) => verifyAt(context, verify, path),
          },
        }
      : {}),
  });
}

/** The checkout is new, so it is made ready first. */
async function verifyAt(
  { environment, observe, request, signal }: LandingContext,
  verify: ShellCommand,
  path: string,
): Promise<Verdict> {
  const { runId, lease, unit } = request;
  const setup = environment.worktrees.setup.map(script => ({ script, shell: 'bash' as const, env: {} }));
  const env = { ...request.env, REPRISE_WORKSPACE: path };
  let output = '';
  for (const [index, command] of [...setup, verify].entries()) {
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
