import { lazySessions } from '../../agents/index.ts';
import type { NewEvent } from '../../core/index.ts';
import type { Tracer, World } from '../../effects/index.ts';
import { topLane } from '../../effects/recording/index.ts';
import { createRedactor, type Redactor } from '../../effects/redact/index.ts';
import { runShellStep } from '../../process/index.ts';
import type { Host } from '../../project/index.ts';
import { settled, stagePaths } from '../context.ts';
import type { CaseStep } from '../manifest/manifest.ts';
import { stableIds, type VirtualClock } from '../perform/clock.ts';
import { Shelf } from '../replay/library.ts';
import { sessionsOf, sharedSessions, taskOf } from '../replay/replay.ts';
import { createVcr, type OpenSessions, openSessions, type Vcr } from '../replay/serve.ts';
import type { BackendSession } from './backends.ts';
import { firstName } from './contract.ts';
import { type Fault, FaultInjector, type FaultPoints } from './faults.ts';
import type { KeyCheck } from './key-check/check.ts';
import type { PreparedCase } from './prepare.ts';

export interface RecordedPortsOptions {
  readonly clock: VirtualClock;
  readonly faults: readonly Fault[];
  /** Checks that effects only change what their keys declare. */
  readonly keyCheck?: KeyCheck | undefined;
}

/** Whether the event stores the result of a session. After it, a restarted command does not open the session again. */
function storesResult({ type, data }: NewEvent): boolean {
  if (type === 'session.ended') return 'answer' in data || 'error' in data;
  return type === 'transition.taken' || type === 'step.completed' || type === 'step.failed';
}

/** Serves recorded sessions and scripts to the commands of one schedule. */
export class RecordedPorts {
  readonly #prepared: PreparedCase;
  readonly #backendSession: BackendSession;
  readonly #options: RecordedPortsOptions;
  readonly #redactor: Redactor;
  readonly #shared: Shelf;
  readonly #vcrs = new Map<string, Vcr>();
  readonly #open = new Map<string, OpenSessions>();
  readonly #injectors = new Map<string, FaultInjector>();

  constructor(prepared: PreparedCase, backendSession: BackendSession, options: RecordedPortsOptions) {
    const { manifest, stage, loaded } = prepared;
    this.#prepared = prepared;
    this.#backendSession = backendSession;
    this.#options = options;
    this.#redactor = createRedactor({ paths: stagePaths(stage), secrets: [] });
    this.#shared = new Shelf(sharedSessions(manifest, loaded.sessions), { again: true });
  }

  hostOf({ name }: CaseStep, world: World): Host {
    const { manifest } = this.#prepared;
    const { clock, faults, keyCheck } = this.#options;
    const opened = openSessions(this.#vcrOf(firstName(name)).openSession);
    this.#open.set(name, opened);
    const injector = new FaultInjector(
      faults.filter(({ step }) => step === name),
      clock,
    );
    this.#injectors.set(name, injector);
    return {
      world: injector.world(keyCheck ? keyCheck.world(world, name) : world),
      clock,
      ids: stableIds(name, this.#prepared.place),
      openSession: settled(injector.sessions(opened.openSession), manifest),
      runShell: this.#vcrOf(firstName(name)).runShell,
      openStore: this.#backendSession.openStore,
      surround: this.#backendSession.surround,
      once: this.#prepared.once,
    };
  }

  /** Notes which sessions have a stored result. */
  readonly tracer: Tracer = {
    granted: () => {},
    settled: ({ lane, effect, args }, _place, { kind }) => {
      if (effect.name !== 'store.append' || kind !== 'ok') return;
      const { events } = args as { readonly events: readonly NewEvent[] };
      if (events.some(storesResult)) this.#vcrs.get(firstName(topLane(lane.name)))?.used();
    },
  };

  async leave(step: string): Promise<void> {
    this.#vcrs.get(firstName(step))?.killed();
    await this.#open.get(step)?.closeAll();
  }

  /** Fault points by command. */
  get faultPoints(): ReadonlyMap<string, FaultPoints> {
    return new Map([...this.#injectors].map(([step, { faultPoints }]) => [step, faultPoints]));
  }

  /** Why the schedule is inconclusive, if it is. */
  get doubt(): string | undefined {
    const [unsupported] = this.#backendSession.problems();
    if (unsupported) return unsupported.message;
    for (const vcr of this.#vcrs.values()) {
      const [problem] = vcr.problems();
      if (problem) return problem.message;
      const unfit = vcr.applied().find(({ kind }) => kind === 'inconclusive');
      if (unfit)
        return `the recorded changes of ${unfit.file} do not apply${unfit.why === undefined ? '' : `: ${unfit.why}`}`;
    }
    return undefined;
  }

  /** Whether a recorded session was replayed on another base commit or prompt. */
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
      ...this.#backendSession.deltas,
      filesAt: this.#backendSession.filesAt,
      openLog: this.#backendSession.openLog,
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
 * Recordings for a command. A `resume` also gets those of earlier commands for the tasks that it has no recording of: the
 * earlier command may be killed sooner than in the recording, which leaves more for the resume to do.
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
