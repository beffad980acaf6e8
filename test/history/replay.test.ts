import type { HistoryEvent } from '../../src/core/events.ts';
import { parseEvent } from '../../src/core/parse-event.ts';
import { canonicalOrder, digestsOf } from '../../src/engine/history/digest.ts';
import { memoryStore } from '../../src/store/memory.ts';
import { countingStore } from '../engine/support.ts';
import { testEngine } from '../support/engine.ts';
import { workflows } from './workflows.ts';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

/** Histories of every version that was released. They are never made anew: what was written once is read for ever. */
const here = import.meta.dirname;
const versions = readdirSync(here, { withFileTypes: true }).flatMap(entry => (entry.isDirectory() ? [entry.name] : []));

const read = (version: string, name: string): HistoryEvent[] => {
  const lines = readFileSync(join(here, version, `${name}.ndjson`), 'utf8').trimEnd().split('\n');
  return lines.map(line => parseEvent(JSON.parse(line)));
};

describe.each(versions)('histories of %s', version => {
  const names = readdirSync(join(here, version)).flatMap(file => (file.endsWith('.ndjson') ? [file.slice(0, -7)] : []));

  it('are there, a dozen at least', () => {
    expect(names.length).toBeGreaterThanOrEqual(12);
  });

  it.each(names)('%s: is read, replayed and digested as it was then', async name => {
    const history = read(version, name);
    const kept = JSON.parse(readFileSync(join(here, version, `${name}.json`), 'utf8'));
    expect(history.map(({ seq }) => seq)).toEqual(history.map((_, index) => index + 1));
    expect({ last: history.at(-1)?.type, ...digestsOf(history) }).toEqual(kept);

    const workflow = workflows[name];
    if (!workflow) throw new Error(`there is no definition for ${name}`);
    const { store, writes } = countingStore({ ...memoryStore(), read: async () => history });
    const replayed = await testEngine({ store }).engine.replay({ workflow, runId: name });
    expect(replayed.history).toEqual(history);
    expect(replayed.result).toEqual(resultOf(history));
    expect(writes).toEqual([]);
  });

  it.each(names)('%s: has a canonical order that begins with its start and ends with its end', name => {
    const history = read(version, name);
    const order = canonicalOrder(history);
    expect(order).toHaveLength(history.length);
    expect(order[0]?.type).toBe('run.started');
    if (history.at(-1)?.type.startsWith('run.')) expect(order.at(-1)?.type).toBe(history.at(-1)?.type);
  });
});

/** What the last event says, without the help of the engine. */
function resultOf(history: readonly HistoryEvent[]): unknown {
  const last = history.at(-1);
  const runId = last?.runId;
  switch (last?.type) {
    case 'run.completed':
      return { runId, status: 'completed', output: last.data.output };
    case 'run.failed':
      return { runId, status: 'failed', error: last.data.error, step: last.data.step };
    case 'run.cancelled':
      return { runId, status: 'cancelled', reason: last.data.reason };
    default:
      return expect.objectContaining({ runId, status: 'waiting' });
  }
}
