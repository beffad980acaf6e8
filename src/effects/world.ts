import type { Effect, EffectDefinition } from './effect.ts';

/** A thread of concurrent activity that was forked from another. */
export interface LaneRef {
  /** The parent's name and the number of the fork, so that it does not depend on timing: `run/3`. */
  readonly name: string;
}

/**
 * The one door to everything that is not a pure function of its arguments. Which mode is behind it is decided
 * once, where the program is put together; nothing on this side can tell.
 *
 * Lanes share nothing but effects. A lane has one effect under way at a time: to do two things at once, fork.
 */
export interface World {
  /**
   * Opens a lane that nobody forked, and runs it to its end. Inside of a lane, the new one is below it
   * (`run/engine#0`), and the outer one waits for it. Lane names are unique among the lanes alive.
   */
  open<T>(lane: string, body: () => Promise<T>): Promise<T>;

  /** Makes a kind of effect callable. */
  effect<Args, Result>(definition: EffectDefinition<Args, Result>): Effect<Args, Result>;

  /** Starts a lane below the current one. A body that throws makes the join of its lane throw. */
  fork(body: () => Promise<void>): LaneRef;

  /** Waits until the lanes have ended. Cancellation does not reach it: a lane outlives what it forked. */
  join(lanes: readonly LaneRef[]): Promise<void>;

  /**
   * Cancels the lanes and all below them: their long effect is aborted, their waits end, and so does the next of
   * either that they begin. Short effects still run, so that they can tidy up. Returns before they have ended.
   */
  cancel(lanes: readonly LaneRef[]): Promise<void>;

  /** Lanes send; the owner receives all that waits, in one effect. */
  mailbox<Message>(name: string, options?: MailboxOptions<Message>): Mailbox<Message>;
}

/** A world in which what a crash leaves behind can be seen without one. */
export interface AbandonableWorld extends World {
  /**
   * Leaves a lane and all below it where they are, for ever: nothing that they ask for ends, and what is performed
   * for them is aborted. Resolves when nothing is performed for them any more. Does nothing if there is no such lane.
   */
  abandon(lane: string): Promise<void>;
}

export interface Mailbox<Message> {
  send(message: Message): Promise<void>;
  /** Waits until there is a message, and takes all that are there at the end of the event-loop turn. */
  receiveAll(): Promise<readonly Message[]>;
}

type DefineEffect = <Args, Result>(definition: EffectDefinition<Args, Result>) => Effect<Args, Result>;

export interface MailboxOptions<Message> {
  /** A message as data, for tapes; the message itself unless it is said. */
  readonly describe?: ((message: Message) => unknown) | undefined;
  /** Whether nobody will change anything in it; not known unless it is said. */
  readonly isLasting?: ((message: Message) => boolean) | undefined;
}

/** A mailbox is nothing but state behind two effects that share a key. */
export function createMailbox<Message>(
  name: string,
  effect: DefineEffect,
  { describe = message => message, isLasting = () => false }: MailboxOptions<Message> = {},
): Mailbox<Message> {
  let waiting: Message[] = [];
  const keys = { writes: [`mailbox:${name}`] };
  const send = effect<Message, void>({
    name: 'mail.send',
    span: 'short',
    answer: 'inside',
    // Whose mailbox it is, its key says.
    taped: { args: describe, lasting: { args: isLasting } },
    keys: () => keys,
    perform: message => {
      waiting.push(message);
    },
  });
  const receiveAll = effect<void, readonly Message[]>({
    name: 'mail.receive',
    span: 'short',
    answer: 'inside',
    // What was received was sent before, and is on the tape there.
    taped: { args: () => undefined, result: messages => messages.length },
    keys: () => keys,
    enabled: () => waiting.length > 0,
    drains: true,
    perform: () => {
      const taken = waiting;
      waiting = [];
      return taken;
    },
  });
  return { send, receiveAll };
}
