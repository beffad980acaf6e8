import type { SessionHost } from '../../agents/session.ts';
import type { Outcome } from '../../effects/effect.ts';
import type { ChoosyTracer, Tracer } from '../../effects/tracer.ts';
import type { WorkFolder } from '../../git/workspace/save.ts';
import type { WorkScript } from '../environment.ts';
import type { SessionTurn } from '../step/agent/live-session.ts';
import type { ShellRequest } from '../step/commands.ts';
import { unitOf } from '../unit.ts';
import type { SessionRecord, ShellRecord } from './activity.ts';
import type { FolderStates } from './folder-states.ts';

export interface Watched {
  readonly states: FolderStates;
  readonly sessions: ReadonlyMap<string, SessionRecord>;
  readonly stopped: Map<string, ShellRecord>;
}

/** The same as effects of sessions have for a key. */
export function sessionKey({ unit, marker }: SessionHost): string {
  if (!unit) return `session:${marker['REPRISE_INCARNATION'] ?? ''}`;
  return `${marker['REPRISE_RUN'] ?? ''}:${unitOf(unit.step, unit.worker)}:${unit.attempt}:${unit.number}`;
}

export const shellKey = ({ unit, what, identity }: Pick<WorkScript, 'unit' | 'what' | 'identity'>): string =>
  keyOfShell({ unit, what, runId: identity.runId });

const keyOfShell = ({ runId, unit, what }: Pick<ShellRequest, 'runId' | 'unit' | 'what'>): string =>
  `${runId}:${unitOf(unit.step, unit.worker)}:${unit.attempt}:${what ?? ''}`;

/** Learns from effects what cannot be seen where sessions and scripts are started. */
export const recordingTracer = (watched: Watched): Tracer & ChoosyTracer => ({
  of: new Set(Object.keys(settle)),
  granted: () => {},
  settled: ({ effect, args }, { phase }, outcome) => {
    if (phase !== 'begin') settle[effect.name]?.(watched, args as never, outcome);
  },
});

const answerOf = (outcome: Outcome): unknown => (outcome.kind === 'ok' ? outcome.value : undefined);

type Settle = (watched: Watched, args: never, outcome: Outcome) => void;

const shellSettled = ({ stopped }: Watched, args: ShellRequest, { kind }: Outcome): void => {
  const key = keyOfShell(args);
  stopped.get(key)?.ended({ kind: 'cancelled' }, { interrupted: kind !== 'ok' });
  stopped.delete(key);
};

const settle: Readonly<Record<string, Settle>> = {
  'workspace.create': ({ states }, { path, base, branch }: WorkFolder, outcome) => {
    const made = answerOf(outcome) as { readonly isFound: boolean } | undefined;
    if (made?.isFound === false) states.cleared(path, base, branch);
    else states.found(path);
  },
  'workspace.reset': ({ states }, { path, base, branch }: WorkFolder, { kind }) => {
    if (kind === 'ok') states.cleared(path, base, branch);
  },
  'workspace.commit': ({ states }, { path, branch }: WorkFolder, outcome) => {
    const saved = answerOf(outcome) as { readonly commit: string } | undefined;
    if (saved) states.committed(path, saved.commit, branch);
  },
  'task.mark': ({ states }, { folder }: { readonly folder: string }) => states.changed(folder),
  'conflict.lay-out': ({ states }, { path }: { readonly path: string }) => states.changed(path),
  'conflict.take-solution': ({ states }, { path }: { readonly path: string }) => states.changed(path),
  'conflict.give-up': ({ states }, { path }: { readonly path: string }) => states.changed(path),
  'session.next': ({ sessions }, { key }: { readonly key: string }, outcome) => {
    const session = sessions.get(key);
    const turn = answerOf(outcome) as SessionTurn | undefined;
    if (!turn) session?.cancelled();
    else if (turn.kind === 'end') session?.taken(turn.cut);
  },
  'shell.run': shellSettled,
  'shell.clean-up': shellSettled,
};
