import { lazySessions } from '../../agents/open-session.ts';
import type { NewEvent } from '../../core/events.ts';
import { topLane } from '../../effects/recording/recording.ts';
import { createRedactor, type Redactor } from '../../effects/redact/redact.ts';
import type { Tracer } from '../../effects/tracer.ts';
import type { World } from '../../effects/world.ts';
import { runShellStep } from '../../process/shell-step.ts';
import type { Host } from '../../project/host.ts';
import { settled, stagePaths } from '../context.ts';
import type { CaseStep } from '../manifest/manifest.ts';
import { stableIds, type VirtualClock } from '../perform/clock.ts';
import { Shelf } from '../replay/library.ts';
import { sessionsOf, sharedSessions, taskOf } from '../replay/replay.ts';
import { createVcr, type OpenSessions, openSessions, type Vcr } from '../replay/serve.ts';
import type { Scene } from './backends.ts';
import { firstName } from './contract.ts';
import { type Chances, type Fault, Misfortune } from './faults.ts';
import type { KeyCheck } from './key-check/check.ts';
import type { PreparedCase } from './prepare.ts';

export interface CastOptions {
  readonly clock: VirtualClock;
  readonly faults: readonly Fault[];
  /** Compares what effects change with what they say. */
  readonly keyCheck?: KeyCheck | undefined;
}

/** With them it is on disk what an agent has come to. */
const usesSessions: ReadonlySet<string> = new Set(['transition.taken', 'step.completed', 'step.failed']);

/** Who plays in one schedule: recorded sessions and scripts, told again to whoever asks for them. */
export class Cast {
  readonly #prepared: PreparedCase;
  readonly #scene: Scene;
  readonly #options: CastOptions;
  readonly #redactor: Redactor;
  readonly #shared: Shelf;
  readonly #vcrs = new Map<string, Vcr>();
  readonly #open = new Map<string, OpenSessions>();
  readonly #misfortunes = new Map<string, Misfortune>();

  constructor(prepared: PreparedCase, scene: Scene, options: CastOptions) {
    const { manifest, stage, loaded } = prepared;
    this.#prepared = prepared;
    this.#scene = scene;
    this.#options = options;
    this.#redactor = createRedactor({ paths: stagePaths(stage), secrets: [] });
    this.#shared = new Shelf(sharedSessions(manifest, loaded.sessions), { again: true });
  }

  hostOf({ name }: CaseStep, world: World): Host {
    const { manifest } = this.#prepared;
    const { clock, faults, keyCheck } = this.#options;
    const opened = openSessions(this.#vcrOf(firstName(name)).openSession);
    this.#open.set(name, opened);
    const misfortune = new Misfortune(
      faults.filter(({ step }) => step === name),
      clock,
    );
    this.#misfortunes.set(name, misfortune);
    return {
      world: misfortune.world(keyCheck ? keyCheck.world(world, name) : world),
      clock,
      ids: stableIds(name, this.#prepared.place),
      openSession: settled(misfortune.sessions(opened.openSession), manifest),
      runShell: this.#vcrOf(firstName(name)).runShell,
      openStore: this.#scene.openStore,
      surround: this.#scene.surround,
      once: this.#prepared.once,
    };
  }

  /** Follows what becomes of sessions. */
  readonly tracer: Tracer = {
    granted: () => {},
    settled: ({ lane, effect, args }, _place, { kind }) => {
      if (effect.name !== 'store.append' || kind !== 'ok') return;
      const { events } = args as { readonly events: readonly NewEvent[] };
      if (events.some(({ type }) => usesSessions.has(type)))
        this.#vcrs.get(firstName(topLane(lane.name)))?.used();
    },
  };

  async leave(step: string): Promise<void> {
    this.#vcrs.get(firstName(step))?.killed();
    await this.#open.get(step)?.closeAll();
  }

  /** What could have failed, by step. */
  get chances(): ReadonlyMap<string, Chances> {
    return new Map([...this.#misfortunes].map(([step, { chances }]) => [step, chances]));
  }

  /** Why nothing can be said about how it ended. */
  get doubt(): string | undefined {
    const [impossible] = this.#scene.problems();
    if (impossible) return impossible.message;
    for (const vcr of this.#vcrs.values()) {
      const [problem] = vcr.problems();
      if (problem) return problem.message;
      const unfit = vcr.applied().find(({ kind }) => kind === 'inconclusive');
      if (unfit) return `${unfit.file} does not fit here${unfit.why === undefined ? '' : `: ${unfit.why}`}`;
    }
    return undefined;
  }

  /** Whether a session was told where another one might have been held. */
  get isCounterfactual(): boolean {
    return [...this.#vcrs.values()].some(
      vcr => vcr.stale().length > 0 || vcr.applied().some(({ kind }) => kind !== 'exact'),
    );
  }

  #vcrOf(step: string): Vcr {
    const { found, manifest, loaded } = this.#prepared;
    const known = this.#vcrs.get(step);
    if (known) return known;
    const vcr = createVcr({
      sessions: sessionsFor(step, manifest.steps, loaded.sessions),
      shared: this.#shared,
      again: true,
      task: unit => taskOf(step, unit),
      redactor: this.#redactor,
      ...this.#scene.deltas,
      filesAt: this.#scene.filesAt,
      openLog: this.#scene.openLog,
      live: manifest.live,
      openSession: lazySessions,
      runShell: runShellStep,
      rerecord: `reprise test ${found.name} --record`,
    });
    this.#vcrs.set(step, vcr);
    return vcr;
  }
}

/**
 * Those of the step; and if it goes on with a run of another, which may be killed sooner here than when it was recorded, of
 * what it did not do then those of the other.
 */
function sessionsFor<T extends { readonly task: string }>(
  step: string,
  steps: readonly CaseStep[],
  sessions: readonly T[],
): readonly T[] {
  const own = sessionsOf(step, sessions);
  const at = steps.findIndex(({ name, command }) => name === step && command === 'resume');
  const before = steps
    .slice(0, Math.max(0, at))
    .flatMap(({ name }) =>
      sessionsOf(name, sessions).map(each => ({ ...each, task: `${step}${each.task.slice(name.length)}` })),
    );
  const done = new Set(own.map(({ task }) => task));
  return [...own, ...before.filter(({ task }) => !done.has(task))];
}
