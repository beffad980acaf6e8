import { expect, it, vi } from 'vitest';
import { toTimestamp } from '../../core/time.ts';
import { noon } from '../test-support.ts';
import { displayWidth } from '../text.ts';
import { formatRunList, type RunListRow } from './history.ts';

vi.stubEnv('TZ', 'UTC');

const row = (status: string, agoMs: number, tookMs: number | null): RunListRow => ({
  runId: `k7x2bcdf${status.length}z`,
  workflow: status === 'failed' ? 'a-workflow-with-a-long-name' : 'order',
  status,
  startedAt: toTimestamp(noon - agoMs),
  endedAt: tookMs === null ? null : toTimestamp(noon - agoMs + tookMs),
});
const rows = [
  row('running', 400, null),
  row('waiting', 42_000, null),
  row('completed', 3_900_000, 2345),
  row('failed', 90_000_000, 61_000),
  row('cancelled', 5 * 86_400_000, 340),
  row('completed', 90 * 86_400_000, 7_500_000),
];

it('shows when runs started and how long they took', () => {
  expect(formatRunList(rows, { color: false, columns: 80, now: noon })).toMatchInlineSnapshot(`
    "●  k7x2bcdf7z  order                        running    just now
    ◔  k7x2bcdf7z  order                        waiting    42s ago
    ✓  k7x2bcdf9z  order                        completed  1h 05m ago  took 2.3s
    ✗  k7x2bcdf6z  a-workflow-with-a-long-name  failed     1 day ago   took 1m 01s
    ■  k7x2bcdf9z  order                        cancelled  5 days ago  took 340ms
    ✓  k7x2bcdf9z  order                        completed  2025-10-17  took 2h 05m
    "
  `);
});

it('fits narrow terminals and drops the id last', () => {
  expect(formatRunList(rows, { color: false, columns: 40, now: noon })).toMatchInlineSnapshot(`
    "●  k7x2bcdf7z  order   running
    ◔  k7x2bcdf7z  order   waiting
    ✓  k7x2bcdf9z  order   completed
    ✗  k7x2bcdf6z  a-wor…  failed
    ■  k7x2bcdf9z  order   cancelled
    ✓  k7x2bcdf9z  order   completed
    "
  `);
  for (const columns of [10, 25, 40, 60]) {
    const lines = formatRunList(rows, { color: false, columns, now: noon }).split('\n');
    for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(columns);
  }
});

it('is empty without runs', () => {
  expect(formatRunList([], { color: false, columns: 80, now: noon })).toBe('');
});
