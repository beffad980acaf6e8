import type { Session, SessionFactory } from '../../agents/index.ts';
import { RepriseError } from '../../core/index.ts';
import type { Redactor } from '../../effects/redact/index.ts';
import type { ShellRunner, WorkScript } from '../../engine/index.ts';
import {
  type RecordedActivity,
  type RecordedSession,
  type RecordedShell,
  sessionFileName,
  shellRole,
  type TaskUnit,
} from '../../engine/recording/index.ts';
import { type Log, type OpenLog, openLogFile, type ShellEnd } from '../../process/index.ts';
import {
  Shelf,
  type StaleSession,
  stalenessOfSession,
  stalenessOfShell,
  type WantedRecording,
} from './library.ts';
import { type AppliedMark, type DeltaOptions, Deltas, VcrSession } from './serve-session.ts';

/** What `live` may say for a script: what it is, exactly or as one of several, or the step that it belongs to. */
export const isLive = (
  live: readonly string[],
  { role, step }: { readonly role: string; readonly step: string },
): boolean => live.some(name => name === role || name === step || name === groupOf(role));

/** `check-1` is one of the `checks`. */
function groupOf(role: string): string | undefined {
  const [, kind = role] = /^(.+)-\d+$/.exec(role) ?? [];
  return groups[kind];
}

const groups: Readonly<Record<string, string>> = {
  run: 'run',
  check: 'checks',
  gate: 'gates',
  rank: 'rank',
  setup: 'setup',
  teardown: 'teardown',
  verify: 'verify',
  'verify-setup': 'verify',
};

export interface VcrOptions extends DeltaOptions {
  readonly sessions: readonly RecordedActivity[];
  readonly redactor: Redactor;
  /** Recordings are served as often as they are asked for. */
  readonly again?: boolean | undefined;
  /** Of tasks that any step may work on; shared by all steps. */
  readonly shared?: Shelf | undefined;
  /** Names the files in a folder: the same for the same files. `undefined` if that cannot be told. */
  readonly filesAt?: ((folder: string) => string | undefined | Promise<string | undefined>) | undefined;
  /** What a unit works on, as it was when the case was recorded. */
  readonly task: (unit: TaskUnit) => string;
  /** What runs for real: `verify`, `checks`, `setup`, `run`; exactly one as `check-1`; or all of a step. */
  readonly live: readonly string[];
  /** For what runs for real. */
  readonly openSession: SessionFactory;
  readonly runShell: ShellRunner;
  /** What to type to record the case again. */
  readonly rerecord: string;
  /** For what scripts printed; files unless it is said. */
  readonly openLog?: OpenLog | undefined;
  readonly onStale?: ((stale: StaleSession) => void) | undefined;
}

/** Stands where sessions and scripts are started, and serves those that were recorded. */
export interface Vcr {
  readonly openSession: SessionFactory;
  readonly runShell: ShellRunner;
  /** Recordings that nobody asked for. */
  leftOver(): readonly string[];
  /** What closed sessions came to is on disk: nobody who begins again asks for them. */
  used(): void;
  /** Whoever held sessions was killed: those that nothing had come of are there for who begins again. */
  killed(): void;
  /** Recordings that were served although something else was asked for. */
  stale(): readonly StaleSession[];
  /** How each change to a folder fared. */
  applied(): readonly AppliedMark[];
  /** Errors that must be seen even if what they were thrown at went on. */
  problems(): readonly RepriseError[];
}

export function createVcr(options: VcrOptions): Vcr {
  const { redactor, live, rerecord } = options;
  const task = (unit: TaskUnit) => unit.task ?? options.task(unit);
  const own = new Shelf(options.sessions, { again: options.again });
  const shelfOf = (unit: TaskUnit) => (unit.task === undefined ? own : (options.shared ?? own));
  const deltas = new Deltas(options);
  const stale: StaleSession[] = [];
  const unused = new Map<RecordedActivity, { readonly shelf: Shelf; readonly isClosed: boolean }>();
  const problems: RepriseError[] = [];
  const report = (error: RepriseError): RepriseError => {
    problems.push(error);
    return error;
  };

  const noteStale = (
    recording: RecordedActivity,
    difference: Pick<StaleSession, 'what' | 'diff'> | undefined,
  ) => {
    if (!difference) return;
    const { file, role, task: on } = recording;
    const found = { file, role, task: on, ...difference, command: rerecord };
    stale.push(found);
    options.onStale?.(found);
  };

  const openSession: SessionFactory = (request, host) => {
    const unit = host.unit ?? { step: host.marker['REPRISE_STEP'] ?? 'session' };
    const wanted = { kind: 'session', role: request.agent.name, task: task(unit) } as const;
    if (isLive(live, { role: wanted.role, step: unit.step })) return options.openSession(request, host);
    const shelf = shelfOf(unit);
    const found = shelf.take(wanted) as RecordedSession | undefined;
    if (!found) return sessionThatFails(report(missing(wanted, { shelf, rerecord })));
    noteStale(found, stalenessOfSession(found, request, redactor));
    const recording = expanded(found, redactor);
    const applyDelta = () => deltas.apply(found, request.cwd);
    const session = new VcrSession({ recording, host, applyDelta, onProblem: report });
    unused.set(found, { shelf, isClosed: false });
    const close = () => {
      if (unused.has(found)) unused.set(found, { shelf, isClosed: true });
      return session.close();
    };
    return { next: answer => session.next(answer), cancel: () => session.cancel(), close };
  };

  const runShell: ShellRunner = async script => {
    const { unit, what, command, projectRoot } = script;
    const wanted = { kind: 'shell', role: shellRole(what), task: task(unit) } as const;
    if (isLive(live, { role: wanted.role, step: unit.step })) return options.runShell(script);
    const shelf = shelfOf(unit);
    const folder = command.workingDirectory ?? projectRoot;
    const subject = isVerification(wanted.role) ? await options.filesAt?.(folder) : undefined;
    const found = shelf.takeAbout(wanted, subject) as RecordedShell | undefined;
    if (!found) throw report(missing(wanted, { shelf, rerecord }));
    noteStale(found, stalenessOfShell(found, script, redactor));
    const applyDelta = () => deltas.apply(found, folder);
    return runRecordedShell(expanded(found, redactor), script, { applyDelta, openLog: options.openLog });
  };

  return {
    openSession,
    runShell,
    leftOver: () => leftOn(own, options),
    used: () => {
      for (const [recording, { isClosed }] of unused) if (isClosed) unused.delete(recording);
    },
    killed: () => {
      for (const [recording, { shelf }] of unused) shelf.putBack(recording);
      unused.clear();
    },
    stale: () => [...stale],
    applied: () => [...deltas.marks],
    problems: () => [...problems],
  };
}

const isVerification = (role: string): boolean => /^verify(-|$)/.test(role);

/** Recordings that nobody asked for. */
export const leftOn = (shelf: Shelf, options: Pick<VcrOptions, 'live' | 'applyDeltas'>): readonly string[] =>
  shelf.left.filter(each => isExpected(each, options)).map(({ file }) => file);

/** What runs for real needs no recording; nor does what belongs to a landing that a tape answers for. */
function isExpected(
  { role, task }: RecordedActivity,
  { live, applyDeltas }: Pick<VcrOptions, 'live' | 'applyDeltas'>,
): boolean {
  const steps = [task, task.slice(task.indexOf('.') + 1)];
  if (steps.some(step => isLive(live, { role, step }))) return false;
  return applyDeltas || !isVerification(role);
}

const expanded = <T extends RecordedActivity>(recording: T, redactor: Redactor): T =>
  redactor.expand(recording) as T;

function missing(
  wanted: WantedRecording,
  { shelf, rerecord }: { readonly shelf: Shelf; readonly rerecord: string },
): RepriseError {
  const { kind, role, task } = wanted;
  const others = shelf.rolesOf(task).filter(name => name !== role);
  const what = kind === 'session' ? `session of agent ${role}` : `script \`${role}\``;
  const name = sessionFileName({ role, task, n: 0 }).replace('.0.jsonl', '.*.jsonl');
  const lines = [
    `no recording is left of a ${what} for ${task}`,
    `  looked for: sessions/${name}`,
    ...(others.length > 0 ? [`  recorded for ${task}: ${others.join(', ')}`] : []),
  ];
  return new RepriseError('REPLAY_DIVERGED', lines.join('\n'), { hint: `record it: ${rerecord}` });
}

/** Opening a session must not throw. */
export const sessionThatFails = (error: RepriseError): Session => ({
  next: () => Promise.reject(error),
  cancel: async () => {},
  close: async () => {},
});

interface ServedShell {
  /** Does to the folder what the script did. */
  readonly applyDelta: () => Promise<void>;
  /** Files unless it is said. */
  readonly openLog?: OpenLog | undefined;
}

/**
 * A script that was recorded, run again without running it: the same output, to whoever listens and in the log, the same
 * changes in the folder, the same end. One that was interrupted goes on until it is interrupted again.
 */
async function runRecordedShell(
  recording: RecordedShell,
  script: WorkScript,
  { applyDelta, openLog = openLogFile }: ServedShell,
): Promise<ShellEnd> {
  let log = '';
  for (const { stream, text } of recording.output) {
    log += `${text}\n`;
    for (const line of text.split('\n')) script.onLine?.(stream, line, false);
  }
  if (log !== '') keep(openLog(script.logFile), log);
  if (recording.cut !== undefined) await aborted(script.signal);
  await applyDelta();
  return recording.end ?? { kind: 'cancelled' };
}

function keep(log: Log, text: string): void {
  log.append(text);
  log.close();
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

/** Sessions of a step, to be closed if it is killed: what they had done by then stays done. */
export interface OpenSessions {
  readonly openSession: SessionFactory;
  closeAll(): Promise<void>;
}

export function openSessions(open: SessionFactory): OpenSessions {
  const sessions = new Set<Session>();
  return {
    openSession: (request, host) => {
      const session = open(request, host);
      sessions.add(session);
      return {
        next: answer => session.next(answer),
        cancel: () => session.cancel(),
        close: async () => {
          sessions.delete(session);
          await session.close();
        },
      };
    },
    closeAll: async () => {
      for (const session of sessions) await session.close();
      sessions.clear();
    },
  };
}
