import type { StatusWord } from '../view/index.ts';
import type { Colour } from './text.ts';

/** Marks that the views draw. */
export interface Glyphs {
  readonly completed: string;
  readonly failed: string;
  readonly cancelled: string;
  readonly skipped: string;
  readonly running: string;
  readonly waiting: string;
  readonly retrying: string;
  readonly pending: string;
  readonly ellipsis: string;
  readonly dot: string;
  /** Mark before a single dependency. */
  readonly after: string;
  /** Mark before several dependencies. */
  readonly join: string;
  readonly spinner: readonly string[];
  readonly branch: {
    readonly only: string;
    readonly first: string;
    readonly middle: string;
    readonly last: string;
    readonly through: string;
  };
}

/** Contains no emoji, because terminals disagree about their width. */
const unicode: Glyphs = {
  completed: '✓',
  failed: '✗',
  cancelled: '■',
  skipped: '–',
  running: '●',
  waiting: '◔',
  retrying: '↻',
  pending: '·',
  ellipsis: '…',
  dot: '·',
  after: '←',
  join: '⇇',
  spinner: [...'⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'],
  branch: { only: '──', first: '┬─', middle: '├─', last: '└─', through: '│ ' },
};

const ascii: Glyphs = {
  completed: 'v',
  failed: 'x',
  cancelled: '#',
  skipped: '-',
  running: '*',
  waiting: '?',
  retrying: '~',
  pending: '.',
  ellipsis: '...',
  dot: '-',
  after: '<-',
  join: '<=',
  spinner: [...'|/-\\'],
  branch: { only: '--', first: '+-', middle: '+-', last: '`-', through: '| ' },
};

/** Unicode marks, or ASCII ones if `showsUnicode` is false. */
export const glyphsFor = (showsUnicode = true): Glyphs => (showsUnicode ? unicode : ascii);

/** Whether the locale of an environment uses UTF-8, by the precedence of POSIX. Without any locale, it is assumed to. */
export function isUtf8Locale(env: Readonly<Record<string, string | undefined>>): boolean {
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'];
  return locale === undefined || locale === '' ? true : /utf-?8/i.test(locale);
}

const colours: Readonly<Record<StatusWord, Colour | undefined>> = {
  pending: 'dim',
  running: 'cyan',
  waiting: 'yellow',
  retrying: 'yellow',
  completed: 'green',
  failed: 'red',
  cancelled: 'magenta',
  skipped: 'dim',
};

export const statusColour = (status: StatusWord): Colour | undefined => colours[status];

/** Converts a status from a run or a file. A suspended run has the mark of a waiting one; an unknown status is pending. */
export function toStatusWord(word: string): StatusWord {
  if (word === 'suspended') return 'waiting';
  return Object.hasOwn(colours, word) ? (word as StatusWord) : 'pending';
}
