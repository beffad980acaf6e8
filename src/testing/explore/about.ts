import { isAboutKeys } from '../../cases/explore/key-check/check.ts';
import { notDeterministic } from '../../effects/explore/search.ts';
import type { Violation } from './violation.ts';

/** What a failure is about: an order of steps, an effect by itself, or that the same order comes to different things. */
export function aboutOf(violation: Pick<Violation, 'what'>): 'order' | 'keys' | 'chance' {
  if (isAboutKeys(violation)) return 'keys';
  return violation.what === notDeterministic ? 'chance' : 'order';
}
