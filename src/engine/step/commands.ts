import { join, resolve } from 'node:path';
import type { Unit } from '../../git/orders.ts';
import type { ShellEnd } from '../../process/shell-step.ts';
import type { Lease } from '../../store/port.ts';
import type { ShellCommand } from '../../workflow/model.ts';
import type { Environment, Observer } from '../environment.ts';
import { attemptFileName, logFile } from '../log-files.ts';
import { inheritedInWorkspace } from '../work/inherited.ts';

/** A shell command that belongs to the work of a step, as data. */
export interface ShellRequest {
  readonly runId: string;
  readonly lease: Lease;
  readonly unit: Unit;
  /** What it is beside the work itself, such as `check-1`. */
  readonly what?: string | undefined;
  readonly command: ShellCommand;
  /** Where it runs, absolute; the project's root by default. */
  readonly folder?: string | undefined;
  /** Beneath what the command says itself. */
  readonly env: Readonly<Record<string, string>>;
  /** It is ended after so long. */
  readonly limitMs?: number | undefined;
}

export interface ShellAnswer {
  readonly end: ShellEnd;
  /** The last line with something on it that went to its standard output. */
  readonly lastLine: string;
  readonly logFile: string;
}

/** Runs a command of a step; its process is remembered for as long as it runs. */
export async function performShell(
  { environment, observe }: { readonly environment: Environment; readonly observe: Observer },
  request: ShellRequest,
  signal: AbortSignal,
): Promise<ShellAnswer> {
  const { store, projectRoot, stateDir, settings, runShell } = environment;
  const { runId, lease, unit, what, command, folder = projectRoot } = request;
  const { step, worker, attempt } = unit;
  const file = logFile({ stateDir, runId }, unit, what);
  const beside = what === undefined ? '' : `.${what}`;
  let pid: number | undefined;
  let lastLine = '';
  try {
    const end = await runShell({
      unit,
      what,
      command: {
        ...command,
        env: { ...request.env, ...command.env },
        workingDirectory: resolve(folder, command.workingDirectory ?? '.'),
      },
      projectRoot,
      scratchDir: join(stateDir, 'scratch', runId, `${attemptFileName(unit)}${beside}`),
      logFile: file,
      identity: { runId, step, attempt, incarnation: incarnationOf(lease, unit) },
      inheritEnv: folder === projectRoot ? environment.env : inheritedInWorkspace(environment.env, folder),
      signal,
      graceMs: settings.graceMs,
      onStarted: async child => {
        pid = child.pid;
        await store.addProcess(runId, lease, { ...child, step });
      },
      onLine: (stream, line) => {
        if (stream === 'stdout' && line.trim() !== '') lastLine = line.trim();
        observe({ kind: 'output', step, ...(worker === undefined ? {} : { worker }), stream, line });
      },
    });
    return { end, lastLine, logFile: file };
  } finally {
    if (pid !== undefined) await store.removeProcess(runId, pid);
  }
}

/** Workers of one step run at the same time: what one of them leaves behind must not be taken for another's. */
export const incarnationOf = ({ incarnation }: Lease, { worker }: Unit): string =>
  worker === undefined ? incarnation : `${incarnation}:${worker}`;
