import { createConductedWorld } from '../../effects/conductor/conductor.ts';
import { verdictOf } from '../../effects/explore/fairness.ts';
import type { Performed, Policy, Verdict } from '../../effects/explore/schedule.ts';
import { exploringPlayer } from '../../effects/explore/scheduler.ts';
import { allTracers } from '../../effects/tracer.ts';
import type { CaseStep } from '../manifest/manifest.ts';
import { advancingClock } from '../perform/clock.ts';
import { type PlayedStep, Player } from '../perform/perform.ts';
import { orStopped } from '../snapshot/snapshot.ts';
import type { Scene, Theatre } from './backends.ts';
import { type Adversity, firstName, noAdversity, type Violation } from './contract.ts';
import { watchForCrashes } from './crashes.ts';
import { brokenIn, endingOf, type Forms, formsOf } from './endings.ts';
import type { Chances } from './faults.ts';
import { openLedger } from './invariants.ts';
import { KeyCheck } from './key-check/check.ts';
import type { PreparedCase } from './prepare.ts';
import { Cast } from './serve.ts';

/** A schedule of a case as it went, with what more is known of it than of any other program. */
export interface PerformedCase extends Performed {
  /** What it came to, if all steps came to their end. */
  readonly forms?: Forms | undefined;
  /** A session was told where another one might have been held. */
  readonly isCounterfactual: boolean;
  /** How many entries each step had: the moments at which it could be killed. */
  readonly entriesOf: ReadonlyMap<string, number>;
  readonly chances: ReadonlyMap<string, Chances>;
}

export interface PerformOptions {
  readonly theatre: Theatre;
  readonly policy: Policy;
  readonly adversity?: Adversity | undefined;
  /** Whether what effects change is compared with what they say that they write. */
  readonly checkKeys?: boolean | undefined;
}

const stepTimeoutMs = 30_000;

/** Plays one schedule of a case, from the first step that is explored to the end. */
export async function performCase({
  theatre,
  policy,
  adversity = noAdversity,
  checkKeys = false,
}: PerformOptions): Promise<PerformedCase> {
  const scene = await theatre.open();
  try {
    return await performOn(scene, { prepared: theatre.prepared, policy, adversity, checkKeys });
  } finally {
    await scene.close();
  }
}

interface Performance {
  readonly prepared: PreparedCase;
  readonly policy: Policy;
  readonly adversity: Adversity;
  readonly checkKeys: boolean;
}

async function performOn(
  scene: Scene,
  { prepared, policy, adversity, checkKeys }: Performance,
): Promise<PerformedCase> {
  const { manifest, stage, context, env, startMs } = prepared;
  const clock = advancingClock(startMs);
  const ledger = openLedger({ verifies: prepared.verifies });
  const keyCheck = checkKeys ? new KeyCheck(() => scene.look()) : undefined;
  const brokenRule = () => ledger.violation ?? keyCheck?.violation;
  const crashes = watchForCrashes({
    crashes: adversity.crashes,
    kill: step => player.kill(step),
    alive: () => player.alive(),
  });
  const player = new Player({
    manifest,
    stage,
    program: context.program,
    env,
    clock,
    defaultTimeoutMs: stepTimeoutMs,
    onKill: step => ledger.crashed(step),
    restart: killed => crashes.restart(killed),
  });
  const exploring = exploringPlayer({
    policy: untilBroken(policy, brokenRule),
    time: clock,
    startMs,
    isPrivate: prepared.isPrivate,
    commutes: isListOfWorktrees,
    nameOf: key => withoutPlace(key, prepared),
  });
  const cast = new Cast(prepared, scene, { clock, faults: adversity.faults, keyCheck });
  const world = createConductedWorld({
    player: exploring.player,
    pace: 'microtask',
    remembersOrigins: false,
    tracer: allTracers([ledger.tracer, player.tracer, cast.tracer, crashes.tracer]),
  });
  const hostOf = (step: CaseStep) => cast.hostOf(step, world);
  const ended = await settle(
    orStopped(player.play({ world, hostOf, onLeft: step => cast.leave(step) }), world),
  );
  player.forget();
  const left = exploring.left();
  // Why it was stopped is known. A world that is left open goes on being told of every promise of the process.
  await world.finish().catch(() => {});
  const performed = {
    trace: exploring.trace,
    left,
    entries: exploring.entries(),
    isCounterfactual: cast.isCounterfactual,
    entriesOf: crashes.entries,
    chances: cast.chances,
  };
  const judged = 'error' in ended ? { verdict: verdictOf(ended.error) } : await judge(scene, ended.value);
  return {
    ...performed,
    ...judged,
    verdict: weigh(judged.verdict, { violation: brokenRule(), doubt: cast.doubt }),
  };
}

/** Folders and incarnations are called otherwise wherever a schedule is played, and are the same in all of them. */
const withoutPlace = (key: string, { stage, place }: PreparedCase): string =>
  /^(wt|worker):/.test(key) ? key.replace(stage.folder, '').replace(place, '') : key;

/** Git cannot add two at once, but each is found by its own folder, whichever came first. */
const isListOfWorktrees = (key: string): boolean => key === 'gitworktrees';

/** What comes after a rule was broken is of no interest. */
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

/** What is to be said of how it ended. */
async function judge(
  scene: Scene,
  played: readonly PlayedStep[],
): Promise<{ readonly verdict: Verdict; readonly forms?: Forms }> {
  const stuck = played.find(({ end }) => end.kind === 'timed-out');
  if (stuck)
    return failed({
      what: 'stuck outside',
      message: `${stuck.step.name} waits for something that is no effect`,
    });
  const ending = await endingOf(scene.store(), {
    repository: await scene.repository(),
    exitCode: worstOf(played),
  });
  const broken = brokenIn(ending) ?? (await scene.violation());
  return { ...(broken ? failed(broken) : { verdict: { kind: 'passed' } }), forms: formsOf(ending) };
}

const failed = (violation: Violation): { readonly verdict: Verdict } => ({
  verdict: { kind: 'failed', ...violation },
});

/** Of each step the last life counts. */
function worstOf(played: readonly PlayedStep[]): number {
  const last = new Map(played.map(({ step, end }) => [firstName(step.name), end]));
  return Math.max(0, ...[...last.values()].map(end => (end.kind === 'exited' ? end.code : 0)));
}

/** A rule that was broken before anything was in doubt is broken; what comes after a doubt says nothing. */
function weigh(
  verdict: Verdict,
  { violation, doubt }: { readonly violation: Violation | undefined; readonly doubt: string | undefined },
): Verdict {
  if (verdict.kind === 'cut') return verdict;
  if (violation) return { kind: 'failed', what: violation.what, message: violation.message };
  return doubt === undefined ? verdict : { kind: 'inconclusive', why: doubt };
}
