import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentDefinition } from '../../agents/agent.ts';
import { openSession } from '../../agents/kinds.ts';
import type { AgentEvent, SessionFactory } from '../../agents/session.ts';
import { createLiveWorld } from '../../effects/live-world.ts';
import { createRedactor, type Redactor } from '../../effects/redact/redact.ts';
import type { Tracer } from '../../effects/tracer.ts';
import { systemClock, systemIds, type World } from '../../effects/world.ts';
import { Engine, type StartOptions } from '../../engine/engine.ts';
import {
  defaultSettings,
  type Environment,
  type Observation,
  type ShellRunner,
  unitFileName,
} from '../../engine/environment.ts';
import { parseSessionFile } from '../../engine/recording/decode.ts';
import { createSessionRecorder } from '../../engine/recording/recorder.ts';
import { formatRecording, type RecordedActivity } from '../../engine/recording/session-file.ts';
import { packDelta } from '../../git/delta/pack.ts';
import { Lab, plainEnvironment } from '../../git/test-support.ts';
import { runShellStep } from '../../process/shell-step.ts';
import { isSameProcess, thisProcess } from '../../process/table.ts';
import { memoryStore } from '../../store/memory.ts';
import type { WorkflowModel } from '../../workflow/model.ts';
import { createVcr, type Vcr, type VcrOptions } from './serve.ts';

export interface Play {
  readonly workflow: WorkflowModel;
  readonly agents?: readonly AgentDefinition[];
  readonly start?: Partial<StartOptions>;
  readonly observe?: (observation: Observation) => void;
  readonly setup?: readonly string[];
}

/** Outcome of a run, for comparison. */
export interface Played {
  readonly status: string;
  readonly result: Awaited<ReturnType<Engine['start']>>;
  readonly agentEvents: readonly AgentEvent[];
  readonly output: readonly string[];
  readonly history: readonly string[];
  /** Tips of all branches. */
  readonly tips: readonly string[];
  /** Trees of all branches, which do not depend on the clock. */
  readonly trees: readonly string[];
  log(name: string): string;
}

export interface Ports {
  readonly openSession: SessionFactory;
  readonly runShell: ShellRunner;
  readonly tracer?: Tracer | undefined;
  /** Defaults to a live world. */
  readonly world?: World | undefined;
}

/** Fresh copy of the same repository, in which runs get the same names. */
export class Stage {
  readonly lab = new Lab();
  readonly redactor: Redactor;

  constructor() {
    this.lab.write('.git/info/exclude', '.reprise\n');
    this.redactor = createRedactor({
      paths: [
        { name: 'repo', path: this.lab.root },
        { name: 'lab', path: this.lab.folder },
      ],
      secrets: [{ name: 'PASSWORD', value: 'correct-horse-battery' }],
    });
  }

  get base(): string {
    return this.lab.git('rev-parse', 'main');
  }

  async play({ workflow, agents = [], start, observe, setup = [] }: Play, ports: Ports): Promise<Played> {
    const { root, folder } = this.lab;
    const agentEvents: AgentEvent[] = [];
    const output: string[] = [];
    const store = memoryStore();
    const stateDir = join(root, '.git', 'reprise');
    const environment: Environment = {
      world: ports.world ?? createLiveWorld({ tracer: ports.tracer }),
      clock: systemClock,
      ids: { ...systemIds, runId: () => 'run-1' },
      store,
      self: thisProcess(),
      projectRoot: root,
      stateDir,
      env: { ...plainEnvironment, HOME: folder, PASSWORD: 'correct-horse-battery' },
      settings: { ...defaultSettings, inboxMs: 5, graceMs: 1000 },
      agents: new Map(agents.map(agent => [agent.name, agent])),
      openSession: ports.openSession,
      runShell: ports.runShell,
      isAlive: isSameProcess,
      worktrees: { folder: join(root, '.reprise', 'workspaces'), setup, include: [] },
    };
    const engine = new Engine(environment, observation => {
      if (observation.kind === 'agent') agentEvents.push(observation.event);
      if (observation.kind === 'output') output.push(`${observation.stream}: ${observation.line}`);
      observe?.(observation);
    });
    const result = await environment.world.open('case', () => engine.start({ workflow, ...start }));
    const history = (await store.read('run-1')).map(({ type, step }) => `${type} ${step ?? ''}`.trim());
    const branches = this.lab.git('for-each-ref', '--format=%(refname) %(objectname)', 'refs/heads');
    return {
      status: result.status,
      result: this.redactor.json(result) as typeof result,
      agentEvents: this.redactor.json(agentEvents) as AgentEvent[],
      output,
      history,
      tips: branches.split('\n'),
      trees: this.lab.git('for-each-ref', '--format=%(refname) %(tree)', 'refs/heads').split('\n'),
      log: name => readFileSync(join(stateDir, 'logs', 'run-1', name), 'utf8'),
    };
  }

  /** Returns the contents of a file on the branch of a step. */
  onBranch(step: string, path: string): string {
    const [branch = ''] = this.lab
      .git('for-each-ref', '--format=%(refname)', `refs/heads/**/*${step}*`)
      .split('\n');
    return this.lab.git('show', `${branch}:${path}`);
  }

  get recordingFolder(): string {
    return join(this.lab.folder, 'recording');
  }

  /** Records a run and returns its recordings and packs, as in a case. */
  async record(play: Play, options: RecordOptions = {}): Promise<RecordedPlay> {
    const { lab, redactor, recordingFolder: folder } = this;
    const { base } = this;
    const problems: string[] = [];
    const recorder = createSessionRecorder({
      folder,
      redactor,
      repository: () => lab.open(),
      projectRoot: lab.root,
      task: taskOf,
      snapshotProject: options.snapshotProject ?? false,
      openSession,
      runShell: runShellStep,
      onProblem: message => problems.push(message),
    });
    const played = await this.play(play, { ...recorder, world: options.wrap?.(recorder.tracer) });
    await recorder.close();
    const blobs = new Map<string, Uint8Array>();
    const recordings: RecordedActivity[] = [];
    for (const recording of this.files()) recordings.push(await this.#packed(recording, base, blobs));
    return { played, problems, recordings, blobs };
  }

  files(): readonly RecordedActivity[] {
    const sessions = join(this.recordingFolder, 'sessions');
    mkdirSync(sessions, { recursive: true });
    return readdirSync(sessions)
      .toSorted()
      .map(name => parseSessionFile(name, readFileSync(join(sessions, name), 'utf8')))
      .filter(file => file.kind !== 'written');
  }

  /** Replays a run with recordings of another stage. */
  async replay(
    play: Play,
    recorded: RecordedPlay,
    options: Partial<VcrOptions> = {},
    world?: World,
  ): Promise<Replayed> {
    const vcr = createVcr({
      sessions: recorded.recordings,
      redactor: this.redactor,
      blobs: sha => recorded.blobs.get(sha) ?? new Uint8Array(),
      repository: () => this.lab.open(),
      applyDeltas: true,
      task: taskOf,
      live: [],
      openSession: () => {
        throw new Error('a real session');
      },
      runShell: () => {
        throw new Error('a real script');
      },
      rerecord: 'reprise test the-case --record',
      ...options,
    });
    return { ...(await this.play(play, { ...vcr, world })), vcr };
  }

  async #packed(
    recording: RecordedActivity,
    base: string,
    blobs: Map<string, Uint8Array>,
  ): Promise<RecordedActivity> {
    const { before, after } = recording;
    let pack: string | undefined;
    if (before && after && JSON.stringify(before) !== JSON.stringify(after)) {
      const objectsDir = join(this.recordingFolder, 'objects');
      const bytes = await packDelta({ repository: await this.lab.open(), objectsDir, base, before, after });
      pack = createHash('sha256').update(bytes).digest('hex');
      blobs.set(pack, bytes);
    }
    const text = formatRecording({ ...recording, pack }, this.redactor);
    return parseSessionFile(recording.file, text) as RecordedActivity;
  }
}

export interface RecordOptions {
  readonly snapshotProject?: boolean;
  /** Creates the world of the run with the tracer of the recorder. */
  readonly wrap?: (tracer: Tracer) => World;
}

export interface RecordedPlay {
  readonly played: Played;
  readonly problems: readonly string[];
  readonly recordings: readonly RecordedActivity[];
  readonly blobs: ReadonlyMap<string, Uint8Array>;
}

export type Replayed = Played & { readonly vcr: Vcr };

const taskOf = (unit: { readonly step: string; readonly worker?: number | undefined }): string =>
  `main.${unitFileName(unit)}`;

/** Returns the parts that a run and its replay must have in common. */
export const essence = ({ result, agentEvents, output, history, trees }: Played) => ({
  result,
  agentEvents,
  output,
  history,
  trees,
});
