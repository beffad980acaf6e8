import type { Effect, EffectDefinition } from '../effects/effect.ts';

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
