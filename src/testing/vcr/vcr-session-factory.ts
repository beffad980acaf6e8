import { scriptedSessions } from '../../agents/scripted/scripted.ts';
import type { Session, SessionFactory, SessionHost, SessionRequest } from '../../agents/session.ts';
import { sessionThatFails } from '../../cases/replay/serve.ts';
import { VcrSession } from '../../cases/replay/serve-session.ts';
import { RepriseError } from '../../core/errors.ts';
import type { Redactor } from '../../effects/redact/redact.ts';
import type { SessionFile } from '../../engine/recording/session-file.ts';
import { type AppliedMark, type DeltaOptions, Deltas } from './deltas.ts';

export interface ServedWorker {
  readonly name: string;
  /** In the order in which they are opened. */
  readonly sessions: readonly { readonly role: string; readonly vcr: string }[];
}

export interface VcrSessionFactoryOptions extends DeltaOptions {
  readonly workers: readonly ServedWorker[];
  /** The file of that name. */
  readonly load: (vcr: string) => SessionFile;
  readonly redactor: Redactor;
}

/** Sessions that were put together by hand, for each worker its own. */
export interface VcrSessionFactory {
  /** The sessions of one worker, one after another. */
  of(worker: string): SessionFactory;
  /** Sessions that no worker has opened. */
  leftOver(): readonly string[];
  applied(): readonly AppliedMark[];
  problems(): readonly RepriseError[];
}

/** Throws what `load` throws: all files are read before anything begins. */
export function createVcrSessionFactory(options: VcrSessionFactoryOptions): VcrSessionFactory {
  const deltas = new Deltas(options);
  const problems: RepriseError[] = [];
  const onProblem = (error: RepriseError): RepriseError => {
    problems.push(error);
    return error;
  };
  const queues = new Map(options.workers.map(worker => [worker.name, queueOf(worker, options)]));

  const serve = (file: SessionFile, request: SessionRequest, host: SessionHost): Session => {
    switch (file.kind) {
      case 'written':
        return scriptedSessions(asScripted(request, file.script), host);
      case 'session': {
        const recording = options.redactor.expand(file) as typeof file;
        const applyDelta = () => deltas.apply(file, request.cwd);
        return new VcrSession({ recording, host, applyDelta, onProblem });
      }
      case 'shell':
        return sessionThatFails(onProblem(notASession(file.file)));
    }
  };

  return {
    of: worker => (request, host) => {
      const role = request.agent.name;
      const queue = queues.get(worker);
      const next = queue?.[0];
      if (!queue || !next) return sessionThatFails(onProblem(noneLeft(worker, role, queue !== undefined)));
      if (next.role !== role && next.role !== anyAgent)
        return sessionThatFails(onProblem(otherRole({ worker, role, next })));
      queue.shift();
      return serve(next.file, request, host);
    },
    leftOver: () =>
      [...queues].flatMap(([worker, queue]) => queue.map(({ role, vcr }) => `${worker}: ${role} (${vcr})`)),
    applied: () => [...deltas.marks],
    problems: () => [...problems],
  };
}

/** A role that any agent may have. */
const anyAgent = 'agent';

interface Queued {
  readonly role: string;
  readonly vcr: string;
  readonly file: SessionFile;
}

const queueOf = ({ sessions }: ServedWorker, { load }: VcrSessionFactoryOptions): Queued[] =>
  sessions.map(({ role, vcr }) => ({ role, vcr, file: load(vcr) }));

const asScripted = (
  request: SessionRequest,
  script: Extract<SessionFile, { kind: 'written' }>['script'],
): SessionRequest => ({ ...request, agent: { ...request.agent, kind: 'scripted', script } });

const noneLeft = (worker: string, role: string, isKnown: boolean): RepriseError =>
  new RepriseError(
    'REPLAY_DIVERGED',
    isKnown
      ? `${worker} opens one more session, of the agent ${role}, and has none left`
      : `there are no sessions for ${worker}, which opens one of the agent ${role}`,
    { hint: `add { role = "${role}", vcr = "..." } to the sessions of ${worker}` },
  );

const otherRole = ({ worker, role, next }: { worker: string; role: string; next: Queued }): RepriseError =>
  new RepriseError(
    'REPLAY_DIVERGED',
    `${worker} opens a session of the agent ${role}, and the next one for it is ${next.vcr}, of ${next.role}`,
    { hint: `put the sessions of ${worker} into the order in which they are opened, or correct a role` },
  );

const notASession = (file: string): RepriseError =>
  new RepriseError('REPLAY_DIVERGED', `${file} is the recording of a script, not of a session`, {
    hint: 'name the recording of a session',
  });
