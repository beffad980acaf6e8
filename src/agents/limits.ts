import { type Timestamp, toTimestamp } from '../core/time.ts';

/** Whether an agent's own words mean that a rate limit or a plan is used up. */
export const isLimitText = (text: string): boolean =>
  /rate.?limit|usage limit|too many requests|quota (exceeded|reached)|exceeded your (current )?quota|hit your .{0,20}limit|limit reached|RESOURCE_EXHAUSTED|\b429\b/i.test(
    text,
  );

const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** When a limit resets, as far as the words say: a date, a number of seconds, "in 2 hours", "at 3pm (Europe/Berlin)". */
export function readReset(text: string, now: number): Timestamp | undefined {
  const found = readDate(text) ?? readEpoch(text) ?? readDelay(text, now) ?? readTimeOfDay(text, now);
  return found === undefined ? undefined : toTimestamp(found);
}

/** Seconds or milliseconds since the epoch, as programs send them. */
export function resetFromEpoch(epoch: number | undefined): Timestamp | undefined {
  if (epoch === undefined || !(epoch > 1_000_000_000) || epoch > 10_000_000_000_000) return undefined;
  return toTimestamp(epoch < 100_000_000_000 ? epoch * 1000 : epoch);
}

function readDate(text: string): number | undefined {
  const date = /\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)/.exec(text)?.[0];
  const epochMs = date === undefined ? Number.NaN : Date.parse(date);
  return Number.isNaN(epochMs) ? undefined : epochMs;
}

function readEpoch(text: string): number | undefined {
  const digits = /(?:\||reset\w*\D{0,20})(\d{10})\b/i.exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits) * 1000;
}

function readDelay(text: string, now: number): number | undefined {
  const said = /\b(?:in|after)[: ]+((?:\d+(?:\.\d+)?\s*(?:d|h|m|s)[a-z]*[,\s]*(?:and\s+)?)+)/i.exec(
    text,
  )?.[1];
  if (said === undefined) return undefined;
  let total = 0;
  for (const [, amount, unit] of said.matchAll(/(\d+(?:\.\d+)?)\s*(ms|d|h|m|s)/gi)) {
    total += Number(amount) * (unitMs[unit?.toLowerCase() ?? ''] ?? 1);
  }
  return now + total;
}

/** The next moment at which the clock of that place, or of this machine, shows the time. */
function readTimeOfDay(text: string, now: number): number | undefined {
  const said = /\b(?:at|resets?)\s+(\d{1,2})(?::(\d\d))?\s*([ap])m(?:\s*\(([\w/+-]+)\))?/i.exec(text);
  if (!said) return undefined;
  const [, hour, minute = '0', half = '', zone] = said;
  const wanted = ((Number(hour) % 12) + (half.toLowerCase() === 'p' ? 12 : 0)) * 60 + Number(minute);
  const shown = minutesOnTheClock(now, zone);
  if (shown === undefined) return undefined;
  const wait = (wanted - shown + 24 * 60) % (24 * 60);
  return Math.floor(now / 60_000 + wait) * 60_000;
}

function minutesOnTheClock(now: number, timeZone: string | undefined): number | undefined {
  try {
    const form = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
    const clock = new Intl.DateTimeFormat('en', { ...form, ...(timeZone ? { timeZone } : {}) }).format(now);
    const [hours, minutes] = clock.split(':');
    return Number(hours) * 60 + Number(minutes);
  } catch {
    return undefined;
  }
}
