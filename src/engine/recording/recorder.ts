import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  type HostAnswer,
  promptWithoutKey,
  type Session,
  type SessionFactory,
  type SessionHost,
  type SessionRequest,
  suspendSession,
  systemPromptOf,
  type TurnEnd,
} from '../../agents/index.ts';
import { toErrorData } from '../../core/index.ts';
import type { ChoosyTracer, EffectOutcome, Tracer } from '../../effects/index.ts';
import { type Redactor, secretsOf } from '../../effects/redact/index.ts';
import { committer, type Repository } from '../../git/index.ts';
import type { WorkFolder } from '../../git/workspace/index.ts';
import type { ShellRunner, WorkScript } from '../environment.ts';
import { unitOf } from '../state/graph.ts';
import type { SessionTurn } from '../step/agent/live-session.ts';
import type { ShellRequest } from '../step/commands.ts';
import { RecordingFile, SeriesNumbers, SessionRecord, ShellRecord } from './activity.ts';
import { type FolderReading, FolderStates, type StateSource } from './folder-states.ts';
import { hashOf, normalisedText, type RecordingStart, sessionFileName, shellRole } from './session-file.ts';

export interface SessionRecorderOptions {
  /** Folder of the recording. Files go to `sessions/` in it, git objects to `objects/`. */
  readonly folder: string;
  readonly redactor: Redactor;
  /** Opens the repository; `undefined` if the project is not in one. */
  readonly repository: () => Promise<Repository | undefined>;
  readonly projectRoot: string;
  readonly task: (unit: TaskUnit) => string;
  /** Numbers shared by all recorders of one folder. */
  readonly numbers?: SeriesNumbers | undefined;
  /** Whether changes in the project folder are recorded too. */
  readonly snapshotProject: boolean;
  readonly openSession: SessionFactory;
  readonly runShell: ShellRunner;
  /** Called once if something could not be recorded. */
  readonly onProblem?: ((message: string) => void) | undefined;
}

export interface TaskUnit {
  readonly step: string;
  readonly worker?: number | undefined;
  /** Task that the unit works on, independent of the worker. */
  readonly task?: string | undefined;
}

/** Wraps the ports that start sessions and scripts, and records what they do. */
export interface SessionRecorder {
  readonly openSession: SessionFactory;
  readonly runShell: ShellRunner;
  /** Observes changes of workspaces and whether results were used. */
  readonly tracer: Tracer & ChoosyTracer;
  /** Reads the states that are still unknown. Nothing is recorded afterwards. */
  close(): Promise<void>;
}

/**
 * Records sessions and scripts while they run. It passes everything through unchanged, and a failing recording never
 * disturbs the work.
 */
export function createSessionRecorder(options: SessionRecorderOptions): SessionRecorder {
  const { redactor, projectRoot, snapshotProject } = options;
  const folder = join(options.folder, 'sessions');
  const onProblem = once(options.onProblem ?? (() => {}));
  const numbers = options.numbers ?? new SeriesNumbers(folder);
  const states = new FolderStates({ source: stateSource(options, onProblem), projectRoot, snapshotProject });
  const sessions = new Map<string, SessionRecord>();
  /** Cancelled scripts, until it is known whether their end was used as a result. */
  const stopped = new Map<string, ShellRecord>();

  const numbered = (role: string, unit: TaskUnit) => {
    const id = numbers.open({ role, task: unit.task ?? options.task(unit) });
    const name = sessionFileName(id);
    return {
      id,
      file: new RecordingFile({ folder, name, redactor, onProblem }),
      reached: () => numbers.reached(id),
    };
  };

  const openSession: SessionFactory = (request, host) => {
    redactor.learn(secretsOfSession(request));
    const { id, file, reached } = numbered(request.agent.name, unitOfHost(host));
    const record = new SessionRecord(file, { ...id, ...sessionStart(request, redactor) }, reached);
    const key = sessionKey(host);
    sessions.set(key, record);
    const onEvent: SessionHost['onEvent'] = event => {
      record.event(event);
      host.onEvent(event);
    };
    return new RecordedPort({
      session: options.openSession(request, { ...host, onEvent }),
      record,
      onBegin: async () => record.before(await states.begin(request.cwd, record)),
      onClosed: async () => {
        sessions.delete(key);
        await states.ended(request.cwd, record, { isToBeSeen: host.unit?.task !== undefined });
      },
    });
  };

  const runShell: ShellRunner = async script => {
    redactor.learn(secretsOf(script.command.env));
    const { id, file, reached } = numbered(shellRole(script.what), script.unit);
    const record = new ShellRecord(file, { ...id, ...shellStart(script, redactor) }, reached);
    const cwd = script.command.workingDirectory ?? projectRoot;
    record.before(await states.begin(cwd, record));
    try {
      const end = await options.runShell({
        ...script,
        onLine: (stream, line, isCut) => {
          record.line(stream, line);
          script.onLine?.(stream, line, isCut);
        },
      });
      if (end.kind === 'cancelled') stopped.set(shellKey(script), record);
      else record.ended(end, { interrupted: false });
      return end;
    } catch (thrown) {
      record.ended(undefined, { interrupted: true });
      throw thrown;
    } finally {
      await states.ended(cwd, record, { isToBeSeen: script.unit.task !== undefined });
    }
  };

  return {
    openSession,
    runShell,
    tracer: recordingTracer({ states, sessions, stopped }),
    async close() {
      for (const record of stopped.values()) record.ended({ kind: 'cancelled' }, { interrupted: true });
      stopped.clear();
      for (const record of sessions.values()) record.closed();
      sessions.clear();
      await states.close();
    },
  };
}

const unitOfHost = ({ unit, marker }: SessionHost): TaskUnit =>
  unit ?? { step: marker['REPRISE_STEP'] ?? 'session' };

type Unnumbered<T> = T extends unknown ? Omit<T, 'role' | 'task' | 'n' | 'cut' | 'order'> : never;

function sessionStart(
  request: SessionRequest,
  redactor: Redactor,
): Unnumbered<Extract<RecordingStart, { kind: 'session' }>> {
  const { agent, resume, nextKey, outputSchema } = request;
  const { name, kind, model } = agent;
  return {
    kind: 'session',
    agent: { name, kind, ...(model === undefined ? {} : { model }) },
    ...promptOf(request, redactor),
    resumes: resume !== undefined,
    ...(nextKey === undefined ? {} : { nextKey }),
    ...(outputSchema === undefined ? {} : { outputSchema }),
  };
}

/** Returns the secrets in the variables of the agent, the workflow and the step. */
export const secretsOfSession = ({ agent, env }: SessionRequest) => secretsOf({ ...agent.env, ...env });

/** Returns the prompt as recorded, without the key of the session, and a hash of everything that the agent is told. */
export function promptOf(
  request: SessionRequest,
  redactor: Pick<Redactor, 'text'>,
): { readonly prompt: string; readonly promptHash: string } {
  const prompt = normalisedText(promptWithoutKey(request), redactor);
  const system = systemPromptOf(request);
  const wholePrompt = system === undefined ? prompt : `${normalisedText(system, redactor)}\n\n${prompt}`;
  return { prompt, promptHash: hashOf(wholePrompt) };
}

function shellStart(
  { command, what }: Pick<WorkScript, 'command' | 'what'>,
  redactor: Redactor,
): Unnumbered<Extract<RecordingStart, { kind: 'shell' }>> {
  return { kind: 'shell', command: commandOf(command, redactor), ...(what === undefined ? {} : { what }) };
}

export const commandOf = (
  { script, shell, workingDirectory }: WorkScript['command'],
  redactor: Pick<Redactor, 'text'>,
) => ({
  script: normalisedText(script, redactor),
  shell,
  working_directory: redactor.text(workingDirectory ?? '.'),
});

/** Loads the code that reads worktrees on demand, because most runs start without it and must not wait for it. */
function stateSource(
  { folder, repository }: SessionRecorderOptions,
  onProblem: (message: string) => void,
): StateSource {
  const objectsDir = join(folder, 'objects');
  const look = async (
    take: (repository: Repository) => Promise<FolderReading['state']>,
  ): Promise<FolderReading> => {
    try {
      const opened = await repository();
      return { state: opened ? await take(opened) : null };
    } catch (error) {
      const why = toErrorData(error).message;
      onProblem(why);
      return { state: null, why };
    }
  };
  return {
    at: path =>
      look(async opened => {
        if (!existsSync(path)) return null;
        const { worktreeState } = await import('../../git/delta/capture.ts');
        return worktreeState({ repository: opened, folder: path, objectsDir });
      }),
    ofCommit: (commit, branch) =>
      look(async opened => {
        const { stateOfCommit } = await import('../../git/delta/capture.ts');
        return stateOfCommit({ repository: opened, commit, branch });
      }),
    beforeCommit: (commit, branch) =>
      look(async opened => {
        const { stateBeforeCommit } = await import('../../git/delta/capture.ts');
        return stateBeforeCommit({ repository: opened, commit, branch, author: committer.email });
      }),
  };
}

function once(report: (message: string) => void): (message: string) => void {
  let isReported = false;
  return message => {
    if (isReported) return;
    isReported = true;
    report(`the recording is incomplete: ${message}`);
  };
}

interface RecordedPortOptions {
  readonly session: Session;
  readonly record: SessionRecord;
  /** Called before anything happens in the folder. */
  readonly onBegin: () => Promise<void>;
  readonly onClosed: () => Promise<void>;
}

/** A session that is recorded while it runs. */
class RecordedPort implements Session {
  readonly #options: RecordedPortOptions;
  #beginning: Promise<void> | undefined;
  #pending: Promise<unknown> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: RecordedPortOptions) {
    this.#options = options;
  }

  next(answer?: HostAnswer): Promise<TurnEnd> {
    const turn = this.#next(answer);
    this.#pending = turn.catch(() => {});
    return turn;
  }

  suspend(hurry?: AbortSignal): void {
    suspendSession(this.#options.session, hurry);
  }

  cancel(): Promise<void> {
    return this.#options.session.cancel();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #next(answer: HostAnswer | undefined): Promise<TurnEnd> {
    const { session, record, onBegin } = this.#options;
    this.#beginning ??= onBegin();
    await this.#beginning;
    if (answer) record.answer(answer);
    const turn = await session.next(answer);
    record.turn(turn);
    return turn;
  }

  async #close(): Promise<void> {
    const { session, record, onClosed } = this.#options;
    await this.#beginning;
    await session.close();
    await this.#pending;
    record.closed();
    await onClosed();
  }
}

interface RecorderContext {
  readonly states: FolderStates;
  readonly sessions: ReadonlyMap<string, SessionRecord>;
  readonly stopped: Map<string, ShellRecord>;
}

/** Returns the key that the effects of the session use. */
function sessionKey({ unit, marker }: SessionHost): string {
  if (!unit) return `session:${marker['REPRISE_INCARNATION'] ?? ''}`;
  return `${marker['REPRISE_RUN'] ?? ''}:${unitOf(unit.step, unit.worker)}:${unit.attempt}:${unit.number}`;
}

const shellKey = ({ unit, what, identity }: Pick<WorkScript, 'unit' | 'what' | 'identity'>): string =>
  keyOfShell({ unit, what, runId: identity.runId });

const keyOfShell = ({ runId, unit, what }: Pick<ShellRequest, 'runId' | 'unit' | 'what'>): string =>
  `${runId}:${unitOf(unit.step, unit.worker)}:${unit.attempt}:${what ?? ''}`;

/** Learns from effects what the ports of sessions and scripts cannot see. */
const recordingTracer = (watched: RecorderContext): Tracer & ChoosyTracer => ({
  of: new Set(Object.keys(settle)),
  granted: () => {},
  settled: ({ effect, args }, { phase }, outcome) => {
    if (phase !== 'begin') settle[effect.name]?.(watched, args as never, outcome);
  },
});

const answerOf = (outcome: EffectOutcome): unknown => (outcome.kind === 'ok' ? outcome.value : undefined);

type Settle = (watched: RecorderContext, args: never, outcome: EffectOutcome) => void;

const shellSettled = ({ stopped }: RecorderContext, args: ShellRequest, { kind }: EffectOutcome): void => {
  const key = keyOfShell(args);
  stopped.get(key)?.ended({ kind: 'cancelled' }, { interrupted: kind !== 'ok' });
  stopped.delete(key);
};

const settle: Readonly<Record<string, Settle>> = {
  'workspace.create': ({ states }, { path, base, branch }: WorkFolder, outcome) => {
    const made = answerOf(outcome) as { readonly isFound: boolean } | undefined;
    if (made?.isFound === false) states.cleared(path, base, branch);
    else states.found(path);
  },
  'workspace.reset': ({ states }, { path, base, branch }: WorkFolder, { kind }) => {
    if (kind === 'ok') states.cleared(path, base, branch);
  },
  'workspace.commit': ({ states }, { path, branch }: WorkFolder, outcome) => {
    const saved = answerOf(outcome) as { readonly commit: string } | undefined;
    if (saved) states.committed(path, saved.commit, branch);
  },
  'task.mark': ({ states }, { folder }: { readonly folder: string }) => states.changed(folder),
  'conflict.lay-out': ({ states }, { path }: { readonly path: string }) => states.changed(path),
  'conflict.take-solution': ({ states }, { path }: { readonly path: string }) => states.changed(path),
  'conflict.give-up': ({ states }, { path }: { readonly path: string }) => states.changed(path),
  'session.next': ({ sessions }, { key }: { readonly key: string }, outcome) => {
    const session = sessions.get(key);
    const turn = answerOf(outcome) as SessionTurn | undefined;
    if (!turn) session?.cancelled();
    else if (turn.kind === 'end') session?.taken(turn.cut);
  },
  'shell.run': shellSettled,
  'shell.clean-up': shellSettled,
};
