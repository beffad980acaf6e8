import type { Model } from '../../../git/model/repository.ts';

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
