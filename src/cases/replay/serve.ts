import { type Session, type SessionFactory, suspendSession } from '../../agents/index.ts';
import { RepriseError } from '../../core/index.ts';
import { type Redactor, secretsOf } from '../../effects/redact/index.ts';
import type { ShellRunner, WorkScript } from '../../engine/index.ts';
import {
  type RecordedActivity,
  type RecordedSession,
  type RecordedShell,
  secretsOfSession,
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

/** Whether `live` names an activity: by its exact role, by its group, or by its step. */
export const isLive = (
  live: readonly string[],
  { role, step }: { readonly role: string; readonly step: string },
): boolean => live.some(name => name === role || name === step || name === groupOf(role));

/** Returns the group of a role, such as `checks` for `check-1`. */
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
  /** Whether recordings are served again once all of them have been served. */
  readonly again?: boolean | undefined;
  /** Shelf for tasks that any command may work on, shared by all commands. */
  readonly shared?: Shelf | undefined;
  /** Returns an id for the contents of a folder, or `undefined` if it is unknown. */
  readonly filesAt?: ((folder: string) => string | undefined | Promise<string | undefined>) | undefined;
  /** Returns the recorded name of the task that a unit works on. */
  readonly task: (unit: TaskUnit) => string;
  /** Activities that run for real: groups such as `checks`, roles such as `check-1`, or steps. */
  readonly live: readonly string[];
  /** Opens sessions that run for real. */
  readonly openSession: SessionFactory;
  /** Runs scripts that run for real. */
  readonly runShell: ShellRunner;
  /** Command that records the case again. */
  readonly rerecord: string;
  /** Opens the logs of scripts. Defaults to files. */
  readonly openLog?: OpenLog | undefined;
  readonly onStale?: ((stale: StaleSession) => void) | undefined;
}

/** Serves recorded sessions and scripts in place of real ones. */
export interface Vcr {
  readonly openSession: SessionFactory;
  readonly runShell: ShellRunner;
  /** Returns the files of all recordings that were never requested. */
  leftOver(): readonly string[];
  /** Marks closed sessions as used. Their results are on disk, so a restarted process does not request them again. */
  used(): void;
  /** Puts unused sessions back, because their process was killed and its successor requests them again. */
  killed(): void;
  /** Returns recordings that were served although the request has changed. */
  stale(): readonly StaleSession[];
  /** Returns the outcome of each change to a folder. */
  applied(): readonly AppliedMark[];
  /** Returns errors that must be reported even if the caller handled them. */
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
    redactor.learn(secretsOfSession(request));
    noteStale(found, stalenessOfSession(found, request, redactor));
    const recording = expanded(found, redactor);
    const applyDelta = () => deltas.apply(found, request.cwd);
    const session = new VcrSession({ recording, host, applyDelta, onProblem: report });
    unused.set(found, { shelf, isClosed: false });
    const close = () => {
      if (unused.has(found)) unused.set(found, { shelf, isClosed: true });
      return session.close();
    };
    return {
      next: answer => session.next(answer),
      suspend: hurry => suspendSession(session, hurry),
      cancel: () => session.cancel(),
      close,
    };
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
    redactor.learn(secretsOf(command.env));
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

/** Returns the files of all recordings on a shelf that were never requested. */
export const leftOn = (shelf: Shelf, options: Pick<VcrOptions, 'live' | 'applyDeltas'>): readonly string[] =>
  shelf.left.filter(each => isExpected(each, options)).map(({ file }) => file);

/** Whether a recording must be requested. Live activities never are, nor are verifications whose landing is taped. */
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
    `  expected: sessions/${name}`,
    ...(others.length > 0 ? [`  recorded for ${task}: ${others.join(', ')}`] : []),
  ];
  return new RepriseError('REPLAY_DIVERGED', lines.join('\n'), { hint: `record it: ${rerecord}` });
}

/** Returns a session that rejects with an error, because opening a session must not throw. */
export const sessionThatFails = (error: RepriseError): Session => ({
  next: () => Promise.reject(error),
  cancel: async () => {},
  close: async () => {},
});

interface ServedShell {
  /** Applies the recorded changes to the folder. */
  readonly applyDelta: () => Promise<void>;
  /** Opens the log of the script. Defaults to a file. */
  readonly openLog?: OpenLog | undefined;
}

/**
 * Replays a recorded script: the same output to the listener and the log, the same changes to the folder, the same end.
 * A script that was interrupted runs until it is interrupted again.
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

/** Open sessions of a command. They are closed if the command is killed, and their changes remain. */
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
        suspend: hurry => suspendSession(session, hurry),
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
