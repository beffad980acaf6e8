import {
  lazySessions,
  noUsage,
  type Session,
  type SessionFactory,
  type SessionResult,
  suspendSession,
} from '../../agents/index.ts';
import {
  type AppliedMark,
  createVcr,
  type DeltaOptions,
  isLive,
  Shelf,
  type StaleSession,
  taskOf,
  type Vcr,
} from '../../cases/replay/index.ts';
import { RepriseError } from '../../core/index.ts';
import type { Redactor } from '../../effects/redact/index.ts';
import type { ShellRunner, WorkScript } from '../../engine/index.ts';
import { type RecordedActivity, shellRole } from '../../engine/recording/index.ts';
import { unitOf } from '../../engine/state/index.ts';
import { runShellStep, type ShellEnd } from '../../process/index.ts';
import type { ForcedEnd, OverridePlan } from './override.ts';

export interface ServedWorkOptions extends Omit<DeltaOptions, 'applyDeltas'> {
  /** Command of the case. */
  readonly step: string;
  readonly sessions: readonly RecordedActivity[];
  readonly redactor: Redactor;
  readonly live: readonly string[];
  readonly plan: OverridePlan;
}

/** Serves the sessions and scripts of one command of a case from the recording, with overridden ends. */
export interface ServedWork {
  readonly openSession: SessionFactory;
  readonly runShell: ShellRunner;
  /** Whether an open session ends without being cancelled. `sessionKey` is the key of its effects. */
  endsByItself(sessionKey: string): boolean;
  shellEndsByItself(script: Pick<WorkScript, 'unit' | 'what'>): boolean;
  stale(): readonly StaleSession[];
  applied(): readonly AppliedMark[];
  problems(): readonly RepriseError[];
  /** Steps that failed because one of their scripts is not in the recording. */
  missing(): readonly string[];
}

export function serveWork(options: ServedWorkOptions): ServedWork {
  const { step, live, plan } = options;
  const shelf = new Shelf(options.sessions);
  const vcrs: Vcr[] = [];
  const missing: string[] = [];
  const waiting = new Set<string>();

  /** Creates a VCR for one recording, which has been chosen already. */
  const vcrOf = (recording: RecordedActivity): Vcr => {
    const { redactor, repository, blobs } = options;
    const vcr = createVcr({
      sessions: [{ ...recording, order: 0 }],
      task: () => recording.task,
      redactor,
      repository,
      blobs,
      applyDeltas: true,
      live: [],
      openSession: lazySessions,
      runShell: runShellStep,
      rerecord: 'reprise test --record',
    });
    vcrs.push(vcr);
    return vcr;
  };

  const openSession: SessionFactory = (request, host) => {
    const { unit } = host;
    if (!unit) throw new RepriseError('INTERNAL', 'the session does not name the step that it belongs to');
    const role = request.agent.name;
    if (isLive(live, { role, step: unit.step })) return lazySessions(request, host);
    const name = unitOf(unit.step, unit.worker);
    const forced = plan.endOf(step, name);
    const found = shelf.take({ kind: 'session', role, task: taskOf(step, unit) });
    const isWhole = found !== undefined && found.cut === undefined;
    if (!isWhole && forced) return sessionThatEnds(forced, request.outputSchema !== undefined);
    if (!isWhole) waiting.add(`${host.marker['REPRISE_RUN']}:${name}:${unit.attempt}:${unit.number}`);
    if (!found) return sessionThatWaits();
    const prompt = plan.promptOf(step, name);
    const session = vcrOf(found).openSession(prompt === undefined ? request : { ...request, prompt }, host);
    return forced?.kind === 'output'
      ? withResult(session, result => outputAsResult(forced, request.outputSchema !== undefined, result))
      : session;
  };

  const runShell: ShellRunner = async script => {
    const { unit, what } = script;
    const role = shellRole(what);
    if (isLive(live, { role, step: unit.step })) return runShellStep(script);
    const name = unitOf(unit.step, unit.worker);
    const forced = plan.endOf(step, name);
    const found = shelf.take({ kind: 'shell', role, task: taskOf(step, unit) });
    const isWhole = found !== undefined && found.cut === undefined;
    if (!isWhole && forced) return completed(forced, what);
    if (!found && script.signal.aborted) return { kind: 'cancelled' };
    if (!found) return notRecorded(`${step}.${name}`, role);
    const end = await vcrOf(found).runShell(script);
    return forced?.kind === 'output' && isOwnWork(what) ? completed(forced, what) : end;
  };

  /** Fails a script inside another effect: unlike a session, it cannot be left waiting. */
  const notRecorded = (key: string, role: string): ShellEnd => {
    missing.push(key);
    const message = `the recording has no script ${role} for ${key}`;
    return { kind: 'failed', error: { code: 'NOT_RECORDED', message }, tail: '' };
  };

  return {
    openSession,
    runShell,
    endsByItself: key => !waiting.has(key),
    shellEndsByItself: ({ unit, what }) => {
      const role = shellRole(what);
      const name = unitOf(unit.step, unit.worker);
      if (isLive(live, { role, step: unit.step }) || plan.endOf(step, name)) return true;
      const next = shelf.peek({ kind: 'shell', role, task: taskOf(step, unit) });
      return next !== undefined && next.cut === undefined;
    },
    stale: () => vcrs.flatMap(vcr => vcr.stale()),
    applied: () => vcrs.flatMap(vcr => vcr.applied()),
    problems: () => vcrs.flatMap(vcr => vcr.problems()),
    missing: () => missing,
  };
}

/** Whether a script is that of the step itself, or a check of its work. */
const isOwnWork = (what: string | undefined): boolean => what === undefined || /^check-/.test(what);

const completed = (forced: ForcedEnd, what: string | undefined): ShellEnd => ({
  kind: 'completed',
  output: forced.kind === 'output' && what === undefined ? forced.output : {},
  tail: '',
});

function outputAsResult(forced: ForcedEnd, isStructured: boolean, before?: SessionResult): SessionResult {
  const { usage = noUsage, denials = [], sessionId } = before ?? {};
  const output = forced.kind === 'output' ? forced.output : null;
  const reply = typeof output === 'object' && output !== null && 'text' in output ? output.text : output;
  return {
    kind: 'ok',
    text: typeof reply === 'string' ? reply : JSON.stringify(output),
    usage,
    denials,
    ...(isStructured ? { structured: output } : {}),
    ...(sessionId === undefined ? {} : { sessionId }),
  };
}

const withResult = (session: Session, change: (result: SessionResult) => SessionResult): Session => ({
  next: async answer => {
    const turn = await session.next(answer);
    return turn.kind === 'end' ? { kind: 'end', result: change(turn.result) } : turn;
  },
  suspend: hurry => suspendSession(session, hurry),
  cancel: () => session.cancel(),
  close: () => session.close(),
});

const sessionThatEnds = (forced: ForcedEnd, isStructured: boolean): Session => ({
  next: async () => ({ kind: 'end', result: outputAsResult(forced, isStructured) }),
  cancel: async () => {},
  close: async () => {},
});

/** A session without a recording: it runs until it is cancelled. */
function sessionThatWaits(): Session {
  let cancel = () => {};
  const cancelled = new Promise<void>(resolve => {
    cancel = resolve;
  });
  return {
    next: async () => {
      await cancelled;
      return { kind: 'end', result: { kind: 'cancelled', usage: noUsage, denials: [] } };
    },
    cancel: async () => cancel(),
    close: async () => cancel(),
  };
}
