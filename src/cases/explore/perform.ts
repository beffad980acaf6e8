import { createConductedWorld } from '../../effects/conductor/index.ts';
import {
  exploringScheduler,
  type Performed,
  type Policy,
  type ScheduleVerdict,
  verdictOf,
} from '../../effects/explore/index.ts';
import { allTracers } from '../../effects/index.ts';
import type { CaseStep } from '../manifest/manifest.ts';
import { advancingClock } from '../perform/clock.ts';
import { CasePerformance, type PlayedStep } from '../perform/perform.ts';
import { orStopped } from '../snapshot/snapshot.ts';
import type { Backend, BackendSession } from './backends.ts';
import { type Faults, firstName, noFaults, type Violation } from './contract.ts';
import { watchForCrashes } from './crashes.ts';
import type { FaultPoints } from './faults.ts';
import { createInvariantMonitor } from './invariants.ts';
import { KeyCheck } from './key-check/check.ts';
import { brokenIn, formsOf, type OutcomeForms, scheduleOutcomeOf } from './outcomes.ts';
import type { PreparedCase } from './prepare.ts';
import { RecordedPorts } from './recorded-ports.ts';

/** Result of playing one schedule of a case. */
export interface PerformedCase extends Performed {
  /** Outcome, if every command ended. */
  readonly forms?: OutcomeForms | undefined;
  /** Whether a recorded session was replayed on another base commit or prompt. */
  readonly isCounterfactual: boolean;
  /** Number of effects of each command, which is also its number of crash points. */
  readonly entriesOf: ReadonlyMap<string, number>;
  /** Number of fault points of each command. */
  readonly faultPoints: ReadonlyMap<string, FaultPoints>;
}

export interface PerformOptions {
  readonly backend: Backend;
  readonly policy: Policy;
  readonly adversity?: Faults | undefined;
  /** Checks that effects only change what their keys declare as written. */
  readonly checkKeys?: boolean | undefined;
}

const stepTimeoutMs = 30_000;

/** Plays one schedule of a case, from the first explored command to the end. */
export async function performCase({
  backend,
  policy,
  adversity = noFaults,
  checkKeys = false,
}: PerformOptions): Promise<PerformedCase> {
  const backendSession = await backend.open();
  try {
    return await performOn(backendSession, { prepared: backend.prepared, policy, adversity, checkKeys });
  } finally {
    await backendSession.close();
  }
}

interface SchedulePerformance {
  readonly prepared: PreparedCase;
  readonly policy: Policy;
  readonly adversity: Faults;
  readonly checkKeys: boolean;
}

async function performOn(
  backendSession: BackendSession,
  { prepared, policy, adversity, checkKeys }: SchedulePerformance,
): Promise<PerformedCase> {
  const { manifest, stage, context, env, startMs } = prepared;
  const clock = advancingClock(startMs);
  const monitor = createInvariantMonitor({ verifies: prepared.verifies });
  const keyCheck = checkKeys ? new KeyCheck(() => backendSession.look()) : undefined;
  const brokenRule = () => monitor.violation ?? keyCheck?.violation;
  const crashes = watchForCrashes({
    crashes: adversity.crashes,
    kill: step => performance.kill(step),
    alive: () => performance.alive(),
  });
  const performance = new CasePerformance({
    manifest,
    stage,
    program: context.program,
    env,
    clock,
    defaultTimeoutMs: stepTimeoutMs,
    onKill: step => monitor.crashed(step),
    restart: killed => crashes.restart(killed),
  });
  const exploring = exploringScheduler({
    policy: untilBroken(policy, brokenRule),
    time: clock,
    startMs,
    isPrivate: prepared.isPrivate,
    commutes: isListOfWorktrees,
    nameOf: key => withoutPlace(key, prepared),
  });
  const ports = new RecordedPorts(prepared, backendSession, { clock, faults: adversity.faults, keyCheck });
  const world = createConductedWorld({
    scheduler: exploring.scheduler,
    pace: 'microtask',
    remembersOrigins: false,
    tracer: allTracers([monitor.tracer, performance.tracer, ports.tracer, crashes.tracer]),
  });
  const hostOf = (step: CaseStep) => ports.hostOf(step, world);
  const ended = await settle(
    orStopped(performance.play({ world, hostOf, onLeft: step => ports.leave(step) }), world),
  );
  performance.forget();
  const left = exploring.left();
  // The error is known already. An unfinished world would keep tracking every promise in the process.
  await world.finish().catch(() => {});
  const performed = {
    trace: exploring.trace,
    left,
    entries: exploring.entries(),
    isCounterfactual: ports.isCounterfactual,
    entriesOf: crashes.entries,
    faultPoints: ports.faultPoints,
  };
  const judged =
    'error' in ended ? { verdict: verdictOf(ended.error) } : await judge(backendSession, ended.value);
  return {
    ...performed,
    ...judged,
    verdict: weigh(judged.verdict, { violation: brokenRule(), doubt: ports.doubt }),
  };
}

/** Removes the folder of the backend from a key, so that keys are equal on every copy of a backend. */
const withoutPlace = (key: string, { stage, place }: PreparedCase): string =>
  /^(wt|worker):/.test(key) ? key.replace(stage.folder, '').replace(place, '') : key;

/** Whether the key is the worktree list. Adding two worktrees conflicts in git, but their order does not matter. */
const isListOfWorktrees = (key: string): boolean => key === 'gitworktrees';

/** Stops the schedule once a rule is broken. */
const untilBroken = (policy: Policy, brokenRule: () => Violation | undefined): Policy => ({
  ...policy,
  choose: point => {
    const broken = brokenRule();
    if (broken) throw new Error(broken.message);
    return policy.choose(point);
  },
});

type Settled<T> = { readonly value: T } | { readonly error: unknown };

const settle = <T>(promise: Promise<T>): Promise<Settled<T>> =>
  promise.then(
    value => ({ value }),
    (error: unknown) => ({ error }),
  );

/** Checks the outcome of a schedule. */
async function judge(
  backendSession: BackendSession,
  played: readonly PlayedStep[],
): Promise<{ readonly verdict: ScheduleVerdict; readonly forms?: OutcomeForms }> {
  const stuck = played.find(({ end }) => end.kind === 'timed-out');
  if (stuck)
    return failed({
      what: 'stuck outside',
      message: `${stuck.step.name} does not end: it waits for something that is not an effect`,
    });
  const outcome = await scheduleOutcomeOf(backendSession.store(), {
    repository: await backendSession.repository(),
    exitCode: worstOf(played),
  });
  const broken = brokenIn(outcome) ?? (await backendSession.violation());
  return { ...(broken ? failed(broken) : { verdict: { kind: 'passed' } }), forms: formsOf(outcome) };
}

const failed = (violation: Violation): { readonly verdict: ScheduleVerdict } => ({
  verdict: { kind: 'failed', ...violation },
});

/** Highest exit code. Only the last restart of each command counts. */
function worstOf(played: readonly PlayedStep[]): number {
  const last = new Map(played.map(({ step, end }) => [firstName(step.name), end]));
  return Math.max(0, ...[...last.values()].map(end => (end.kind === 'exited' ? end.code : 0)));
}

/** A broken rule counts in any case; any other verdict is inconclusive once a recorded session did not fit. */
function weigh(
  verdict: ScheduleVerdict,
  { violation, doubt }: { readonly violation: Violation | undefined; readonly doubt: string | undefined },
): ScheduleVerdict {
  if (verdict.kind === 'cut') return verdict;
  if (violation) return { kind: 'failed', what: violation.what, message: violation.message };
  return doubt === undefined ? verdict : { kind: 'inconclusive', why: doubt };
}
