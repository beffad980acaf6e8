import { InvalidArgumentError } from 'commander';
import { parseDuration } from '../core/index.ts';

/** Parser for options that take a whole number of at least `least`. */
export const wholeNumber =
  (least: number) =>
  (text: string): number => {
    if (/^\d+$/.test(text) && Number(text) >= least) return Number(text);
    throw new InvalidArgumentError(`Expected a whole number, ${least} or greater.`);
  };

/** Parses a duration such as `30s` into milliseconds. */
export function duration(text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined) return ms;
  throw new InvalidArgumentError('Expected a duration such as 30s or 2m.');
}

/** Like `duration`, for a time in which something must happen. */
export function durationAboveZero(text: string): number {
  const ms = duration(text);
  if (ms > 0) return ms;
  throw new InvalidArgumentError('Expected a duration above 0, such as 30s or 2m.');
}

/** Parses an amount such as `5` or `$2.50` into US dollars. */
export function amount(text: string): number {
  const dollars = Number(text.replace(/^\$/, ''));
  if (text.trim() !== '' && Number.isFinite(dollars) && dollars > 0) return dollars;
  throw new InvalidArgumentError('Expected an amount in US dollars such as 5 or 2.50.');
}

/** Collects the values of a repeatable option. */
export const collect = (value: string, previous: readonly string[] = []): readonly string[] => [
  ...previous,
  value,
];

/** Parser for options that take a comma-separated list of the given words. */
export const oneOrMore =
  <Word extends string>(words: readonly Word[]) =>
  (text: string): readonly Word[] => {
    const chosen = text.split(',').map(word => word.trim());
    const unknown = chosen.find(word => !words.includes(word as Word));
    if (unknown === undefined) return chosen as Word[];
    throw new InvalidArgumentError(`Expected some of ${words.join(', ')}; got ${unknown}.`);
  };
