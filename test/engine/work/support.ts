import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { AgentDefinition, ScriptStep } from '../../../src/agents/agent.ts';
import { openSession } from '../../../src/agents/kinds.ts';
import { RepriseError } from '../../../src/core/errors.ts';
import type { HistoryEvent } from '../../../src/core/events.ts';
import type { Clock } from '../../../src/core/time.ts';
import { createLiveWorld } from '../../../src/effects/live-world.ts';
import { type LaneRef, systemClock, systemIds, type World } from '../../../src/effects/world.ts';
import { defaultSettings, type Environment, type Observation } from '../../../src/engine/environment.ts';
import type { StepEnd } from '../../../src/engine/run/messages.ts';
import { type StepWorkEvent, WorkState } from '../../../src/engine/state/work-state.ts';
import { doWork } from '../../../src/engine/step/attempt.ts';
import type { KnownWork, SelectionLane, WorkLane, WorkNote } from '../../../src/engine/step/contract.ts';
import { createWorkEffects } from '../../../src/engine/step/effects.ts';
import { select } from '../../../src/engine/step/selection.ts';
import { Lab, plainEnvironment } from '../../../src/git/test-support.ts';
import { runShellStep } from '../../../src/process/shell-step.ts';
import { isSameProcess, thisProcess } from '../../../src/process/table.ts';
import { endTrees, markedWith } from '../../../src/process/tree.ts';
import { memoryStore } from '../../../src/store/memory.ts';
import type { EventStore, Lease } from '../../../src/store/port.ts';
import type {
  AgentBody,
  Body,
  Command,
  RunBody,
  Scope,
  StepModel,
  WorkRules,
} from '../../../src/workflow/model.ts';
import { deferred } from '../../support/engine.ts';

export interface LabOptions {
  readonly agents?: readonly AgentDefinition[];
  readonly setup?: readonly string[];
  readonly include?: readonly string[];
  readonly clock?: Clock;
  readonly store?: EventStore;
  /** Whether the project is outside of a repository. */
  readonly bare?: boolean;
  readonly graceMs?: number;
}

const at = '2026-01-01T00:00:00.000Z';

/** A real repository and a real world in which steps do their work without the engine around them. */
export class WorkLab {
  readonly git = new Lab();
  readonly runId = `r${Math.random().toString(36).slice(2, 10)}`;
  readonly store: EventStore;
  readonly world: World = createLiveWorld({ refuseStrays: true });
  readonly observations: Observation[] = [];
  readonly environment: Environment;
  readonly #agents = new Map<string, AgentDefinition>();
  readonly #waiting = new Set<() => void>();
  #lease: Lease = { epoch: 1, incarnation: 'tester' };
  #lanes = 0;

  constructor(options: LabOptions = {}) {
    this.store = options.store ?? memoryStore();
    const root = options.bare ? join(this.git.folder, 'no repository') : this.git.root;
    mkdirSync(root, { recursive: true });
    if (!options.bare) this.git.write('.git/info/exclude', '.reprise\n');
    this.environment = {
      world: this.world,
      clock: options.clock ?? systemClock,
      ids: systemIds,
      store: this.store,
      self: thisProcess(),
      projectRoot: root,
      stateDir: join(root, '.reprise', 'state'),
      env: { ...plainEnvironment, HOME: this.git.folder },
      settings: { ...defaultSettings, graceMs: options.graceMs ?? 500 },
      agents: this.#agents,
      openSession,
      runShell: runShellStep,
      isAlive: isSameProcess,
      worktrees: {
        folder: join(root, '.reprise', 'workspaces'),
        setup: options.setup ?? [],
        include: options.include ?? [],
      },
    };
    for (const agent of options.agents ?? []) this.define(agent);
    this.effects = createWorkEffects(this.environment, observation => {
      this.observations.push(observation);
      for (const wake of this.#waiting) wake();
    });
    onTestFinished(() => this.#expectNothingLeft());
  }

  readonly effects;

  async start(): Promise<void> {
    this.#lease = await this.store.createRun({
      runId: this.runId,
      workflow: 'flow',
      owner: { incarnation: 'tester', ...thisProcess() },
      expiresAt: at,
      at,
      events: [],
    });
  }

  get root(): string {
    return this.environment.projectRoot;
  }

  /** Returns a step or copy whose attempts follow each other. */
  unit(body: Body, given: Partial<UnderWork> = {}): UnitUnderTest {
    return new UnitUnderTest(this, body, given);
  }

  lease(): Lease {
    return this.#lease;
  }

  /** Runs the body as a lane and returns its result. `cancelWhen` cancels the lane. */
  async run<T>(body: () => Promise<T>, cancelWhen?: Promise<unknown>): Promise<T> {
    const outcome = deferred<T>();
    const waitFor = this.world.effect<Promise<unknown>, void>({
      name: 'test.wait',
      span: 'long',
      perform: async promise => {
        await promise;
      },
    });
    await this.world.open(`test-${this.#lanes++}`, async () => {
      const lane: LaneRef = this.world.fork(async () => {
        try {
          outcome.resolve(await body());
        } catch (thrown) {
          outcome.reject(thrown);
        }
      });
      if (cancelWhen) {
        await waitFor(Promise.race([cancelWhen, outcome.promise.catch(() => {})]));
        await this.world.cancel([lane]);
      }
      await this.world.join([lane]);
    });
    return outcome.promise;
  }

  /** Resolves when a matching observation was made. */
  async seen(matches: (observation: Observation) => boolean): Promise<void> {
    while (!this.observations.some(matches)) {
      await new Promise<void>(resolve => {
        const wake = () => {
          this.#waiting.delete(wake);
          resolve();
        };
        this.#waiting.add(wake);
      });
    }
  }

  get notices(): readonly string[] {
    return this.observations.flatMap(each => (each.kind === 'notice' ? each.message : []));
  }

  log(name: string): string {
    return readFileSync(join(this.environment.stateDir, 'logs', this.runId, name), 'utf8');
  }

  define(agent: AgentDefinition): void {
    this.#agents.set(agent.name, agent);
  }

  /** Returns the command of an agent that runs a Node program. */
  program(source: string): readonly string[] {
    const file = join(this.git.folder, `agent-${Math.random().toString(36).slice(2)}.mjs`);
    writeFileSync(file, source);
    return [process.execPath, file];
  }

  async #expectNothingLeft(): Promise<void> {
    const left = markedWith({ REPRISE_RUN: this.runId });
    await endTrees({ roots: [], marked: { REPRISE_RUN: this.runId }, graceMs: 0 });
    expect(left).toEqual([]);
    expect(await this.store.processes(this.runId)).toEqual([]);
  }
}

export interface UnderWork {
  readonly step: string;
  readonly worker: number | undefined;
  readonly model: Partial<StepModel>;
  readonly scope: Partial<Scope>;
  readonly left: WorkLane['left'];
  readonly workOf: WorkLane['workOf'];
  readonly base: WorkLane['base'];
}

interface Life {
  readonly cancelWhen?: Promise<unknown>;
  /** Event after which the process dies, as soon as the event is durable. */
  readonly crashAfter?: WorkNote['type'];
  /** Event at which another process owns the run. */
  readonly fencedFrom?: WorkNote['type'];
}

/** The engine's view of a unit: its events, folded as the engine folds them. */
export class UnitUnderTest {
  readonly notes: WorkNote[] = [];
  readonly #lab: WorkLab;
  readonly #given: Partial<UnderWork>;
  readonly #model: StepModel;
  readonly #state = new WorkState();
  #attempt = 1;
  #lastError: KnownWork['lastError'];
  readonly #listeners = new Set<() => void>();

  constructor(lab: WorkLab, body: Body, given: Partial<UnderWork>) {
    this.#lab = lab;
    this.#given = given;
    this.#model = {
      id: 'fix',
      needs: [],
      optional: false,
      timeout: {},
      body,
      fingerprint: 'f',
      ...given.model,
    };
  }

  /** Runs the lane once. */
  async work(options: Life = {}): Promise<StepEnd> {
    const crashed = deferred();
    const lane = this.#lane(options, crashed.resolve);
    return this.#lab.run(() => doWork(lane), options.cancelWhen ?? (options.crashAfter && crashed.promise));
  }

  /** Prepares the next attempt after a failure, as the engine does. */
  retry(end: StepEnd): void {
    this.#attempt++;
    this.#lastError = end.kind === 'failed' ? end.error : undefined;
    this.#state.newAttempt();
  }

  get types(): readonly string[] {
    return this.notes.map(({ type }) => type);
  }

  of<T extends WorkNote['type']>(type: T): Extract<WorkNote, { type: T }>['data'][] {
    return this.notes.flatMap(note => (note.type === type ? [note.data] : [])) as never;
  }

  /** Resolves when an event of the type is recorded. */
  async recorded(type: WorkNote['type']): Promise<void> {
    while (!this.notes.some(note => note.type === type))
      await new Promise<void>(resolve => this.#listeners.add(resolve));
  }

  get folder(): string {
    return join(this.#lab.root, this.of('workspace.created')[0]?.path ?? '?');
  }

  read(name: string): string | undefined {
    const file = join(this.folder, name);
    return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  }

  git(...args: readonly string[]): string {
    return this.#lab.git.gitAt(this.folder, ...args);
  }

  #lane({ crashAfter, fencedFrom }: Life, onCrash: () => void): WorkLane {
    const { step = 'fix', worker, scope, left = {}, workOf } = this.#given;
    const lab = this.#lab;
    let isDead = false;
    const record = lab.world.effect<readonly WorkNote[], void>({
      name: 'test.record',
      span: 'short',
      perform: notes => {
        for (const note of notes) {
          if (isDead) return;
          if (note.type === fencedFrom) throw new RepriseError('FENCED', 'another process took over the run');
          this.notes.push(note);
          this.#fold(note);
          for (const notify of this.#listeners) notify();
          if (note.type === crashAfter) {
            isDead = true;
            onCrash();
          }
        }
      },
    });
    const { workspace, session, answer, answers, sessions, reworks, landings, transitions } = this.#state;
    return {
      effects: lab.effects,
      runId: lab.runId,
      workflow: 'flow',
      lease: lab.lease(),
      unit: { step, attempt: this.#attempt, ...(worker === undefined ? {} : { worker }) },
      model: this.#model,
      scope: { inputs: {}, steps: {}, status: 'success', ...scope },
      known: {
        workspace,
        answer,
        answers,
        sessions,
        reworks,
        landings: new Map(landings),
        transitions,
        session: session?.sessionId === undefined ? undefined : { ...session, sessionId: session.sessionId },
        lastError: this.#lastError,
      },
      base:
        'base' in this.#given ? this.#given.base : { ref: 'main', commit: lab.git.git('rev-parse', 'main') },
      left,
      workOf: workOf ?? (() => ({})),
      record: (...notes) => record(notes),
      conclude: note => void record([note]),
    };
  }

  #fold(note: WorkNote): void {
    if (note.type === 'selection.made') return;
    const event = { seq: 1, runId: this.#lab.runId, at, step: 'fix', attempt: this.#attempt, ...note };
    this.#state.apply(event as HistoryEvent as StepWorkEvent);
  }
}

export async function workLab(options: LabOptions = {}): Promise<WorkLab> {
  const lab = new WorkLab(options);
  await lab.start();
  return lab;
}

export const agentOf = (given: Partial<AgentDefinition> = {}): AgentDefinition => ({
  name: 'coder',
  kind: 'command',
  permissions: 'edit',
  allow: [],
  deny: [],
  args: [],
  env: {},
  ...given,
});

export const scripted = (script: readonly ScriptStep[], given: Partial<AgentDefinition> = {}) =>
  agentOf({ kind: 'scripted', script, ...given });

export const command = (text: string): Command => ({
  text,
  command: () => ({ script: text, shell: 'bash', env: {} }),
});

const rules = (given: Partial<WorkRules> = {}): WorkRules => ({
  workspace: { kind: 'worktree', readonly: false, base: { kind: 'run' } },
  setup: [],
  teardown: [],
  checks: [],
  artifacts: [],
  ...given,
});

export const readonlyWorkspace: WorkRules['workspace'] = {
  kind: 'worktree',
  readonly: true,
  base: { kind: 'run' },
};

export const agentBody = (
  given: Partial<Omit<AgentBody, 'work'>> & { work?: Partial<WorkRules> } = {},
): AgentBody => ({
  kind: 'agent',
  agent: 'coder',
  prompt: () => 'Fix it.',
  env: () => ({}),
  rework: 0,
  ...given,
  work: rules(given.work),
});

export const runBody = (script: string, work?: Partial<WorkRules>): RunBody => ({
  kind: 'run',
  command: () => ({ script, shell: 'bash', env: {} }),
  ...(work ? { work: rules(work) } : {}),
});

/** Runs the selection among candidates. */
export async function pick(
  lab: WorkLab,
  given: Pick<SelectionLane, 'rule' | 'candidates'> & { readonly notes?: WorkNote[] },
): Promise<StepEnd> {
  const record = lab.world.effect<readonly WorkNote[], void>({
    name: 'test.record',
    span: 'short',
    perform: notes => void given.notes?.push(...notes),
  });
  const lane: SelectionLane = {
    effects: lab.effects,
    runId: lab.runId,
    workflow: 'flow',
    lease: lab.lease(),
    unit: { step: 'fix', attempt: 1 },
    model: { id: 'fix', needs: [], optional: false, timeout: {}, body: agentBody(), fingerprint: 'f' },
    scope: { inputs: {}, steps: {}, status: 'success' },
    known: { answers: 0, sessions: 0, reworks: 0, landings: new Map(), transitions: [] },
    base: { ref: 'main', commit: lab.git.git('rev-parse', 'main') },
    left: {},
    record: (...notes) => record(notes),
    conclude: note => void record([note]),
    ...given,
  };
  return lab.run(() => select(lane));
}
