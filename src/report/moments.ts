import { formatDuration } from '../core/time.ts';

const two = (value: number): string => String(value).padStart(2, '0');

/** `12:01:03` in the time zone of whoever looks. */
export function clockTime(epochMs: number): string {
  const date = new Date(epochMs);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':');
}

/** `12:01:03.250` */
export const preciseTime = (epochMs: number): string =>
  `${clockTime(epochMs)}.${String(new Date(epochMs).getMilliseconds()).padStart(3, '0')}`;

/** `2026-01-31`, also in the time zone of whoever looks. */
export function calendarDay(epochMs: number): string {
  const date = new Date(epochMs);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

const day = 86_400_000;

/** `just now`, `42s ago`, `3h 05m ago`, `4 days ago`; from a month on, the date. */
export function relativeTime(epochMs: number, now: number): string {
  const ago = now - epochMs;
  if (ago < 1000) return 'just now';
  if (ago < 60_000) return `${Math.floor(ago / 1000)}s ago`;
  if (ago < day) return `${formatDuration(ago)} ago`;
  if (ago < 2 * day) return '1 day ago';
  return ago < 30 * day ? `${Math.floor(ago / day)} days ago` : calendarDay(epochMs);
}
