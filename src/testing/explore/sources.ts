import type { PerformedCase } from '../../cases/explore/perform.ts';
import { oneStallEach, SomeOrders } from '../../cases/explore/sources.ts';
import type { PolicyName } from '../../effects/explore/policies.ts';
import { type AdversityOptions, everyMishap, oneMishapEach, withMishaps } from './adversities.ts';
import type { Adversity, Source } from './attempt.ts';

interface SourceOptions extends AdversityOptions {
  readonly policy: PolicyName;
  readonly seed: number;
}

/** Where schedules come from, beside every order and every crash of the recorded one, as far as a trial shows what there is. */
export function sourcesFor(trial: PerformedCase, options: SourceOptions): readonly Source[] {
  const { policy } = options;
  const mishaps = everyMishap(trial, options);
  const stalls = oneStallEach(trial);
  const interruptions = oneStallEach(trial, { isCalm: true });
  return [
    ...(policy === 'auto' ? [stalls, interruptions, stalls] : []),
    ...(mishaps.length > 0 ? [oneMishapEach(mishaps)] : []),
    ...samplersFor(trial, { ...options, mishaps }),
  ];
}

function samplersFor(
  trial: PerformedCase,
  { policy, seed, mishaps }: SourceOptions & { readonly mishaps: readonly Adversity[] },
): readonly Source[] {
  const sampled = policy === 'auto' ? (['urw', 'pct', 'random'] as const) : ([policy] as const);
  return sampled.flatMap(each => {
    if (each === 'dpor') return [];
    const orders = new SomeOrders(each, { seed, trial });
    if (mishaps.length === 0) return [orders];
    return [orders, withMishaps(new SomeOrders(each, { seed: seed + 1_000_000, trial }), mishaps, seed)];
  });
}
