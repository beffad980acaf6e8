import type { Effect, EffectDefinition } from './effect.ts';

export interface Mailbox<Message> {
  send(message: Message): Promise<void>;
  /** Waits until there is a message, and takes all that are there at the end of the event-loop turn. */
  receiveAll(): Promise<readonly Message[]>;
}

type DefineEffect = <Args, Result>(definition: EffectDefinition<Args, Result>) => Effect<Args, Result>;

/** A mailbox is nothing but state behind two effects that share a key. */
export function createMailbox<Message>(name: string, effect: DefineEffect): Mailbox<Message> {
  let waiting: Message[] = [];
  const keys = { writes: [`mailbox:${name}`] };
  const send = effect<Message, void>({
    name: 'mail.send',
    span: 'short',
    keys: () => keys,
    perform: message => {
      waiting.push(message);
    },
  });
  const receiveAll = effect<void, readonly Message[]>({
    name: 'mail.receive',
    span: 'short',
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
