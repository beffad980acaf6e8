import { lazySessions } from '../../agents/open-session.ts';
import { noUsage, type Session, type SessionFactory, type SessionResult } from '../../agents/session.ts';
import { Shelf, type StaleSession } from '../../cases/replay/library.ts';
import { taskOf } from '../../cases/replay/replay.ts';
import { createVcr, isLive, type Vcr } from '../../cases/replay/serve.ts';
import type { AppliedMark, DeltaOptions } from '../../cases/replay/serve-session.ts';
import { RepriseError } from '../../core/errors.ts';
import type { Redactor } from '../../effects/redact/redact.ts';
import type { ShellRunner, WorkScript } from '../../engine/environment.ts';
import { type Recording, shellRole } from '../../engine/recording/session-file.ts';
import { unitOf } from '../../engine/state/graph.ts';
import { runShellStep, type ShellEnd } from '../../process/shell-step.ts';
import type { ForcedEnd, Plan } from './override.ts';

export interface ServedWorkOptions extends Omit<DeltaOptions, 'applyDeltas'> {
  /** The step of the case. */
  readonly step: string;
  readonly sessions: readonly Recording[];
  readonly redactor: Redactor;
  readonly live: readonly string[];
  readonly plan: Plan;
}

/** The sessions and scripts of one step of a case: as they were recorded, unless they are to end otherwise. */
export interface ServedWork {
  readonly openSession: SessionFactory;
  readonly runShell: ShellRunner;
  /** Whether the session, once it is open, comes to its end by itself; by the key of its effects. */
  endsByItself(sessionKey: string): boolean;
  shellEndsByItself(script: Pick<WorkScript, 'unit' | 'what'>): boolean;
  stale(): readonly StaleSession[];
  applied(): readonly AppliedMark[];
  problems(): readonly RepriseError[];
  /** Steps whose work failed because some of it is not in the recording. */
  missing(): readonly string[];
}

export function serveWork(options: ServedWorkOptions): ServedWork {
  const { step, live, plan } = options;
  const shelf = new Shelf(options.sessions);
  const vcrs: Vcr[] = [];
  const missing: string[] = [];
  const waiting = new Set<string>();

  /** A player for this recording alone: which one it is has been decided. */
  const playerOf = (recording: Recording): Vcr => {
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
    if (!unit) throw new RepriseError('INTERNAL', 'a session says nothing of the step that it belongs to');
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
    const session = playerOf(found).openSession(
      prompt === undefined ? request : { ...request, prompt },
      host,
    );
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
    const end = await playerOf(found).runShell(script);
    return forced?.kind === 'output' && isOwnWork(what) ? completed(forced, what) : end;
  };

  /** Of what runs inside of another effect, which cannot be left waiting. */
  const notRecorded = (key: string, role: string): ShellEnd => {
    missing.push(key);
    const message = `the script ${role} of ${key} was never recorded`;
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

/** The script of the step, or one that judges its work. */
const isOwnWork = (what: string | undefined): boolean => what === undefined || /^check-/.test(what);

const completed = (forced: ForcedEnd, what: string | undefined): ShellEnd => ({
  kind: 'completed',
  output: forced.kind === 'output' && what === undefined ? forced.output : {},
  tail: '',
});

function outputAsResult(forced: ForcedEnd, isStructured: boolean, before?: SessionResult): SessionResult {
  const { usage = noUsage, denials = [], sessionId } = before ?? {};
  const output = forced.kind === 'output' ? forced.output : null;
  const said = typeof output === 'object' && output !== null && 'text' in output ? output.text : output;
  return {
    kind: 'ok',
    text: typeof said === 'string' ? said : JSON.stringify(output),
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
  cancel: () => session.cancel(),
  close: () => session.close(),
});

const sessionThatEnds = (forced: ForcedEnd, isStructured: boolean): Session => ({
  next: async () => ({ kind: 'end', result: outputAsResult(forced, isStructured) }),
  cancel: async () => {},
  close: async () => {},
});

/** Nobody knows what it would have said: it goes on until it is cancelled. */
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
