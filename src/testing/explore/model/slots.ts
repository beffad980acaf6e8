import { RepriseError } from '../../../core/errors.ts';
import type { Environment } from '../../../engine/environment.ts';
import type { Lease } from '../../../store/port.ts';
import type { Model } from './model.ts';

type Living = Pick<Environment, 'self' | 'isAlive'>;

interface SlotOrder {
  readonly key: string;
  readonly agent: string;
  readonly places: number;
  readonly lease: Lease;
}

/** Whether one of the places of an agent is free, or held by somebody who is dead. */
export const hasFreeSlot = (
  model: Model,
  { agent, places }: Pick<SlotOrder, 'agent' | 'places'>,
  { isAlive }: Pick<Living, 'isAlive'>,
): boolean =>
  [...model.slots.values()].filter(slot => slot.agent === agent && isAlive(slot.owner)).length < places;

/** To be called when one is free. */
export function takeSlot(model: Model, order: SlotOrder, living: Living): void {
  const { key, agent, lease } = order;
  if (!hasFreeSlot(model, order, living))
    throw new RepriseError('INTERNAL', `no place of the agent ${agent} is free for ${key}`);
  for (const [other, slot] of model.slots)
    if (slot.agent === agent && !living.isAlive(slot.owner)) model.slots.delete(other);
  model.slots.set(key, {
    agent,
    token: 1,
    owner: { ...living.self, incarnation: `${lease.incarnation}:${key}` },
  });
}

export const releaseSlot = (model: Model, key: string): void => void model.slots.delete(key);

const firstPort = 20_000;
const portsEach = 10;

/** The lowest that nobody has. */
export function takePorts(
  model: Model,
  { key, before }: { readonly key: string; readonly before?: { first: number; size: number } | undefined },
): { readonly first: number; readonly size: number } {
  const taken = new Set([...model.ports].flatMap(([other, { first }]) => (other === key ? [] : first)));
  let first = before?.first ?? firstPort;
  while (!before && taken.has(first)) first += portsEach;
  const range = { first, size: before?.size ?? portsEach };
  model.ports.set(key, range);
  return range;
}
