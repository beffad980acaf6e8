import { InvalidArgumentError } from 'commander';
import { parseDuration } from '../core/time.ts';

/** For options that take a whole number. */
export const wholeNumber =
  (least: number) =>
  (text: string): number => {
    if (/^\d+$/.test(text) && Number(text) >= least) return Number(text);
    throw new InvalidArgumentError(`It must be a whole number from ${least}.`);
  };

/** For options such as `30s`: milliseconds. */
export function duration(text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined) return ms;
  throw new InvalidArgumentError('It must be a duration such as 30s or 2m.');
}

/** For options such as `5` or `$2.50`: US dollars. */
export function amount(text: string): number {
  const dollars = Number(text.replace(/^\$/, ''));
  if (text.trim() !== '' && Number.isFinite(dollars) && dollars > 0) return dollars;
  throw new InvalidArgumentError('It must be an amount of US dollars such as 5 or 2.50.');
}

/** For options that may be repeated. */
export const collect = (value: string, before: readonly string[] = []): readonly string[] => [
  ...before,
  value,
];

/** For options that take some of several words, with commas between them. */
export const oneOrMore =
  <Word extends string>(words: readonly Word[]) =>
  (text: string): readonly Word[] => {
    const chosen = text.split(',').map(word => word.trim());
    const unknown = chosen.find(word => !words.includes(word as Word));
    if (unknown === undefined) return chosen as Word[];
    throw new InvalidArgumentError(`${unknown} is none of ${words.join(', ')}.`);
  };
