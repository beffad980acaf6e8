import type { StatusWord } from '../view/step-board.ts';
import type { Colour } from './text.ts';

/** The marks of the views. */
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
  /** Before the one step that a step comes after. */
  readonly after: string;
  /** Before several. */
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

/** None of them is an emoji: terminals disagree on how wide those are. */
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

/** Characters for a terminal that shows all of them (the default), or ASCII alone. */
export const glyphsFor = (showsUnicode = true): Glyphs => (showsUnicode ? unicode : ascii);

/** Whether the locale of an environment is one with UTF-8, as POSIX finds it; none at all is taken for a modern one. */
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

/** For words from outside: a suspended run waits, and what is unknown is shown as pending. */
export function toStatusWord(word: string): StatusWord {
  if (word === 'suspended') return 'waiting';
  return Object.hasOwn(colours, word) ? (word as StatusWord) : 'pending';
}
