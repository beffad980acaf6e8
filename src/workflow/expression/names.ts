import { nearest } from '../../core/suggest.ts';

/** No person wrote so many, and comparing each with each takes too long. */
const maxNames = 2000;

/** The name that was most likely meant. */
export const nearestName = (word: string, names: ReadonlySet<string>): string | undefined =>
  names.size > maxNames ? undefined : nearest(word, names);
