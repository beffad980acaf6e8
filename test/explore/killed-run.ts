import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { lazySessions } from '../../src/agents/open-session.ts';
import { createInvariantMonitor } from '../../src/cases/explore/invariants.ts';
import {
  type RepositoryEnd,
  type ScheduleOutcome,
  scheduleOutcomeOf,
} from '../../src/cases/explore/outcomes.ts';
import { advancingClock, stableIds } from '../../src/cases/perform/clock.ts';
import type { HistoryEvent } from '../../src/core/events.ts';
import type { Ids } from '../../src/core/time.ts';
import { createConductedWorld } from '../../src/effects/conductor/conductor.ts';
import { nonPreemptivePolicy } from '../../src/effects/explore/policies.ts';
import { exploringScheduler } from '../../src/effects/explore/scheduler.ts';
import { allTracers, type Tracer } from '../../src/effects/tracer.ts';
import type { World } from '../../src/effects/world.ts';
import { runShellStep } from '../../src/process/shell-step.ts';
import { abandonIncarnation, readmitIncarnation } from '../../src/process/table.ts';
import { openEngine } from '../../src/project/open-engine.ts';
import { memoryStore } from '../../src/store/memory.ts';
import { answersFor } from '../crash/answers.ts';
import { agents, forgetFailure, noteFailure, workflows } from '../crash/workflows.ts';
import { WaitingFunctions } from './waiting-functions.ts';

const startMs = Date.parse('2026-01-01T00:00:00Z');

export type Life = 'ended' | 'suspended' | 'killed';

/** A run of a workflow of the crash test, whose processes can be killed after a given effect. */
export class KilledRun {
  readonly name: string;
  readonly folder: string;
  readonly store = memoryStore();
  readonly monitor = createInvariantMonitor({ verifies: true });
  readonly #clock = advancingClock(startMs);
  readonly #incarnations: string[] = [];
  /** Number of effects of each process, which is also its number of crash points. */
  readonly entries: number[] = [];

  constructor(name: string, folder: string) {
    this.name = name;
    this.folder = folder;
    rmSync(folder, { recursive: true, force: true });
    if (name === 'agents') cpSync(repositoryBeside(folder), folder, { recursive: true });
    else mkdirSync(folder);
  }

  /** Runs one process until it ends, or kills it right after `killAfter` effects. */
  async live(killAfter = Number.POSITIVE_INFINITY): Promise<Life> {
    const life = `life-${this.entries.length + 1}`;
    const at = this.entries.push(0) - 1;
    forgetFailure();
    process.env['CRASH_MARKS'] = join(this.folder, 'marks');
    const functions = new WaitingFunctions();
    let kill = () => {};
    const killed = new Promise<Life>(resolve => {
      kill = () => {
        for (const incarnation of this.#incarnations) abandonIncarnation(incarnation);
        this.monitor.crashed(life);
        void world.abandon(life).then(() => resolve('killed'));
      };
    });
    const counting: Tracer = {
      granted: () => {},
      settled: () => {
        this.entries[at] = (this.entries[at] ?? 0) + 1;
        if (this.entries[at] === killAfter) kill();
      },
    };
    const { scheduler: player } = exploringScheduler({
      policy: { ...nonPreemptivePolicy, isCalm: true },
      time: this.#clock,
      startMs: this.#clock.now(),
    });
    const world = createConductedWorld({
      scheduler: view => functions.withWaiting(player(view)),
      pace: 'microtask',
      remembersOrigins: false,
      tracer: allTracers([this.monitor.tracer, functions.tracer, counting]),
    });
    const stopped = world.stopped.then(error => {
      throw error;
    });
    stopped.catch(() => {});
    const lived = world.open(life, () => this.#begin(world, { life, functions }));
    lived.catch(() => {});
    const end = await Promise.race([lived, killed, stopped]);
    await world.finish();
    return end;
  }

  async #begin(
    world: World,
    { life, functions }: { readonly life: string; readonly functions: WaitingFunctions },
  ): Promise<Life> {
    const { store, folder } = this;
    const seeFailure = (events: readonly Pick<HistoryEvent, 'type'>[]) => {
      if (!events.some(({ type }) => type === 'step.failed')) return;
      noteFailure();
      functions.failureSeen();
    };
    const { engine } = await openEngine({
      root: folder,
      stateDir: folder,
      env: process.env,
      store,
      agents,
      settings: { inboxMs: 5, graceMs: 500 },
      observe: observation => {
        if (observation.kind === 'events') seeFailure(observation.events);
      },
      host: {
        world,
        clock: this.#clock,
        ids: this.#remembered(stableIds(life)),
        openSession: lazySessions,
        runShell: runShellStep,
      },
    });
    await engine.prepare();
    const { model: workflow } = workflows[this.name] ?? {};
    if (!workflow) throw new Error(`no workflow ${this.name}`);
    const [run] = await store.list();
    if (run) seeFailure(await store.read(run.runId));
    const { status } = await (run
      ? engine.resume({ workflow, runId: run.runId })
      : engine.start({ workflow }));
    return status === 'waiting' ? 'suspended' : 'ended';
  }

  /** Resumes until the run has ended. A failed run counts as ended: resuming it would retry it. */
  async seeThrough(): Promise<void> {
    while (!(await this.hasEnded())) {
      await this.answer();
      await this.live();
    }
  }

  async answer(): Promise<void> {
    const [run] = await this.store.list();
    if (run) await answersFor(this.name, this.store, run.runId);
  }

  async hasEnded(): Promise<boolean> {
    return /^run\.(completed|failed|cancelled)$/.test((await this.history()).at(-1)?.type ?? '');
  }

  async history(): Promise<readonly HistoryEvent[]> {
    const [run] = await this.store.list();
    return run ? this.store.read(run.runId) : [];
  }

  /** Outcome of the run. */
  async ending(): Promise<ScheduleOutcome> {
    const repository = this.name === 'agents' ? repositoryIn(this.folder) : noRepository;
    return scheduleOutcomeOf(this.store, { repository, exitCode: 0 });
  }

  /** Clears the killed incarnations, because later runs use the same names. */
  forget(): void {
    for (const incarnation of this.#incarnations) {
      abandonIncarnation(incarnation);
      readmitIncarnation(incarnation);
    }
  }

  #remembered(ids: Ids): Ids {
    return {
      ...ids,
      incarnation: () => {
        const incarnation = ids.incarnation();
        this.#incarnations.push(incarnation);
        return incarnation;
      },
    };
  }
}

const main = 'main';
const noRepository: RepositoryEnd = {
  main,
  onMain: new Set(),
  tree: undefined,
  tips: new Map(),
  worktrees: [],
};

const gitIn =
  (cwd: string) =>
  (...args: string[]): readonly string[] =>
    execFileSync('git', args, { cwd, encoding: 'utf8', stdio: 'pipe' }).trim().split('\n');

function repositoryIn(folder: string): RepositoryEnd {
  const git = gitIn(folder);
  const tips = git('for-each-ref', '--format=%(refname:short) %(objectname)', 'refs/heads');
  return {
    main,
    onMain: new Set(git('rev-list', main)),
    tree: git('rev-parse', `${main}^{tree}`)[0],
    tips: new Map(tips.map(line => line.split(' ') as [string, string])),
    worktrees: git('worktree', 'list', '--porcelain').filter(line => line.startsWith('worktree ')),
  };
}

/** Creates the repository once; many runs start from a copy. */
function repositoryBeside(run: string): string {
  const folder = `${run}-repository`;
  if (existsSync(folder)) return folder;
  mkdirSync(folder);
  const git = gitIn(folder);
  git('init', '--quiet', `--initial-branch=${main}`);
  git('config', 'user.name', 'Test');
  git('config', 'user.email', 'test@example.com');
  git('commit', '--quiet', '--allow-empty', '--message', 'Begin');
  return folder;
}
