import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { AgentEvent } from '../../../agents/session.ts';
import { openLogFile } from '../../../process/output-file.ts';
import { linesOf, SessionLog } from './live-session.ts';

test('the activity of an agent is logged as readable lines', () => {
  const events: readonly AgentEvent[] = [
    { type: 'started', sessionId: 's1', model: 'm' },
    { type: 'thought', text: 'hm\nso' },
    { type: 'tool-start', id: '1', name: 'Bash', input: {}, title: 'ls -l' },
    { type: 'tool-end', id: '1', ok: true },
    { type: 'tool-end', id: '2', ok: false },
    { type: 'permission', id: '3', tool: 'Bash', input: {}, decision: { kind: 'deny', message: 'No.' } },
    { type: 'permission', id: '3', tool: 'Bash', input: {}, decision: { kind: 'allow' } },
    { type: 'usage', inputTokens: 1, outputTokens: 1, cachedTokens: 0, costUsd: null },
    { type: 'text', text: 'Done.' },
    { type: 'done', outcome: 'ok' },
  ];
  expect(events.map(linesOf).filter(line => line !== undefined)).toEqual([
    'session s1 (m)',
    '~ hm\n~ so',
    '> ls -l',
    '! failed',
    '! denied: No.',
    'Done.',
  ]);
  expect(linesOf({ type: 'tool-end', id: '1', ok: true, output: 'x'.repeat(1e6) })?.length).toBeLessThan(
    3000,
  );
});

test('a closed log contains every event up to its close and none after', () => {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-log-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'deep/er.log');
  const log = new SessionLog(openLogFile(file), () => Promise.resolve());
  for (let n = 0; n < 20_000; n++) log.add({ type: 'text', text: `line ${n}` });
  log.close();
  log.add({ type: 'text', text: 'late' });
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  expect(lines).toHaveLength(20_000);
  expect(lines.at(-1)).toBe('line 19999');
});
