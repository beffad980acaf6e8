import type { Session, SessionFactory } from '../agents/session.ts';

/** Sessions of a step, to be closed if it is killed: what they had done by then stays done. */
export interface OpenSessions {
  readonly openSession: SessionFactory;
  closeAll(): Promise<void>;
}

export function openSessions(open: SessionFactory): OpenSessions {
  const sessions = new Set<Session>();
  return {
    openSession: (request, host) => {
      const session = open(request, host);
      sessions.add(session);
      return {
        next: answer => session.next(answer),
        cancel: () => session.cancel(),
        close: async () => {
          sessions.delete(session);
          await session.close();
        },
      };
    },
    closeAll: async () => {
      for (const session of sessions) await session.close();
      sessions.clear();
    },
  };
}
