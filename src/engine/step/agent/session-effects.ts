import { existsSync } from 'node:fs';
import type { HostAnswer } from '../../../agents/index.ts';
import { type Repository, stalledText, type WorkUnit } from '../../../git/index.ts';
import { syncWork } from '../../../git/workspace/index.ts';
import type { Lease } from '../../../store/index.ts';
import type { Environment, Observer } from '../../environment.ts';
import { incarnationOf } from '../commands.ts';
import { requireOwner } from '../taping.ts';
import { folderKey } from '../workspace-effects.ts';
import { LiveSession, type SessionAccount, type SessionStart, type SessionTurn } from './live-session.ts';
import { type HeldSlot, hasFreeSlot, takeSlot } from './slots.ts';

const slotKey = (agent: string): string => `slot:${agent}`;

/** Conflict key of the suspension of a run. */
const suspensionKey = (runId: string): string => `suspend:${runId}`;

export interface RunOwner {
  readonly runId: string;
  readonly lease: Lease;
}

export interface SlotWait {
  readonly key: string;
  readonly agent: string;
  readonly places: number;
  readonly lease: Lease;
  /** Unit whose session needs the slot. */
  readonly unit: WorkUnit;
  /** Notice while it waits. Defaults to one that names the agent and its limit. */
  readonly why?: string | undefined;
  /** Whether a slot whose holder is stalled does not count. */
  readonly skipsStalled?: boolean | undefined;
}

/** Effects for agent sessions and for the concurrency slots of an agent. */
export function sessionEffects(
  environment: Environment,
  { observe, repository }: { readonly observe: Observer; readonly repository: () => Promise<Repository> },
) {
  const { world, ids, slotDir: stateDir = environment.stateDir, projectRoot } = environment;
  /** Running sessions, by key. An effect takes only data as arguments, so it looks sessions up here. */
  const sessions = new Map<string, LiveSession>();
  const slots = new Map<string, HeldSlot>();
  const inWorkspace = ({ folder }: { readonly folder: string }) =>
    folder === projectRoot ? {} : { writes: [folderKey(folder)] };
  const notice = (message: string) => observe({ kind: 'notice', message });
  const sessionAt = (key: string): LiveSession => {
    const session = sessions.get(key);
    if (!session) throw new Error(`no running session with the key ${key}`);
    return session;
  };

  /** Signals that make the sessions of suspended runs hurry, by run and epoch. */
  const suspended = new Map<string, AbortSignal | undefined>();
  const ownership = ({ runId, lease }: RunOwner) => `${runId}:${lease.epoch}`;

  return {
    /** Stops the sessions of a run at the next point at which they lose nothing. New ones stop before they start. */
    suspendSessions: world.effect<RunOwner & { readonly hurry?: AbortSignal | undefined }, void>({
      name: 'session.suspend',
      span: 'short',
      answer: 'inside',
      taped: { args: ({ runId }) => runId },
      keys: ({ runId }) => ({ writes: [suspensionKey(runId)] }),
      perform: ({ runId, lease, hurry }) => {
        suspended.set(ownership({ runId, lease }), hurry);
        for (const [key, session] of sessions) if (key.startsWith(`${runId}:`)) session.suspend(hurry);
      },
    }),

    /** Returns whether the run is being suspended, so that its work must be left as it is. */
    isSuspending: world.effect<RunOwner, boolean>({
      name: 'session.suspending',
      span: 'short',
      answer: 'inside',
      taped: { args: ({ runId }) => runId },
      keys: ({ runId }) => ({ reads: [suspensionKey(runId)] }),
      perform: owner => suspended.has(ownership(owner)),
    }),

    newSessionId: world.effect<void, string>({
      name: 'ids.session',
      span: 'short',
      answer: 'tape',
      perform: () => ids.sessionId(),
    }),

    /** Waits for a free slot of the agent and holds it under the key until it is released. */
    takeSlot: world.effect<SlotWait, void>({
      name: 'agent.take-slot',
      span: 'long',
      taped: { args: ({ key, agent, places }) => ({ key, agent, places }) },
      awaits: {
        keys: ({ agent }) => ({ writes: [slotKey(agent)] }),
        isOver: wait => hasFreeSlot({ stateDir, ...wait }),
      },
      perform: async ({ key, agent, places, lease, unit, why, skipsStalled }, { signal }) => {
        const owner = { ...environment.self, incarnation: `${lease.incarnation}:${key}` };
        const waiting = why ?? `waiting for a free slot of agent ${agent} (limit ${places})`;
        const slot = await takeSlot({
          ...{ stateDir, agent, places, owner, skipsStalled, signal },
          marker: { REPRISE_INCARNATION: incarnationOf(lease, unit) },
          onWait: (holder, stalledMs) =>
            notice(stalledMs === undefined ? waiting : stalledText(holder, stalledMs)),
          giveUpMs: environment.settings.lockTimeoutMs,
        });
        slots.set(key, slot);
      },
    }),

    /** Does nothing if no slot is held under the key. */
    releaseSlot: world.effect<{ readonly key: string; readonly agent: string }, void>({
      name: 'agent.release-slot',
      span: 'short',
      keys: ({ agent }) => ({ writes: [slotKey(agent)] }),
      perform: ({ key }) => {
        slots.get(key)?.release();
        slots.delete(key);
      },
    }),

    openSession: world.effect<{ readonly key: string; readonly start: SessionStart }, void>({
      name: 'session.open',
      span: 'short',
      answer: 'inside',
      // The prompt is recorded with the session, so that a changed prompt invalidates only that recording.
      taped: {
        args: ({ key, start: { number, request } }) => ({
          key,
          number,
          agent: request.agent.name,
          ...(request.resume ? { resumes: request.resume.sessionId } : {}),
        }),
      },
      perform: async ({ key, start }) => {
        await requireOwner(environment.store, start);
        const session = new LiveSession(environment, observe, start);
        sessions.set(key, session);
        const owner = ownership(start);
        if (suspended.has(owner)) session.suspend(suspended.get(owner));
      },
    }),

    nextTurn: world.effect<
      { readonly key: string; readonly folder: string; readonly answer?: HostAnswer | undefined },
      SessionTurn
    >({
      name: 'session.next',
      span: 'long',
      answer: 'inside',
      keys: inWorkspace,
      perform: ({ key, answer }, cancellation) => {
        const session = sessionAt(key);
        cancellation.onCancel(() => session.cancel());
        return session.next(answer);
      },
    }),

    /**
     * Ends the session. Until then the agent may write to its workspace. The work survives a power loss before history says
     * that the session has ended, because it is not repeated from then on.
     */
    closeSession: world.effect<{ readonly key: string; readonly folder: string }, SessionAccount>({
      name: 'session.close',
      span: 'long',
      answer: 'inside',
      cleanup: true,
      taped: { args: ({ key }) => key },
      keys: inWorkspace,
      perform: async ({ key, folder }) => {
        const account = await sessionAt(key).close();
        sessions.delete(key);
        if (folder !== projectRoot && existsSync(folder)) await syncWork(await repository(), folder);
        return account;
      },
    }),
  };
}
