import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { EffectDefinition } from '../../src/effects/effect.ts';
import { createLiveWorld } from '../../src/effects/live-world.ts';
import { systemClock, systemIds } from '../../src/effects/world.ts';
import { createEffects } from '../../src/engine/effects.ts';
import { defaultSettings, type Environment } from '../../src/engine/environment.ts';
import { createWork } from '../../src/engine/step/work.ts';
import { thisProcess } from '../../src/process/table.ts';
import { memoryStore } from '../../src/store/memory.ts';
import type { EventStore } from '../../src/store/port.ts';
import { createWorkerEffects } from '../../src/worker/effects/effects.ts';
import { defaultTaskSource, defaultWorkerSettings } from '../../src/workflow/yaml/config-workers.ts';

/** Store with every record that an effect may touch beyond its arguments. */
async function filledStore(): Promise<EventStore> {
  const store = memoryStore();
  const owner = { incarnation: 'i', host: 'h', pid: 1, processStart: 's' };
  const at = '2026-01-01T00:00:00.000Z';
  await store.createRun({ runId: 'r1', workflow: 'w', owner, expiresAt: at, at, events: [] });
  await store.claims.take({ task: 't', seen: 0, version: 'v', runId: 'r1', by: 'a', at });
  return store;
}

/** All declared effects by name. */
function declared(store: EventStore): ReadonlyMap<string, EffectDefinition<unknown, unknown>> {
  const found = new Map<string, EffectDefinition<unknown, unknown>>();
  const world = createLiveWorld();
  const never = () => {
    throw new Error('this test performs no effect');
  };
  const environment: Environment = {
    world: {
      ...world,
      effect: definition => {
        found.set(definition.name, definition as EffectDefinition<unknown, unknown>);
        return world.effect(definition);
      },
    },
    clock: systemClock,
    ids: systemIds,
    store,
    self: thisProcess(),
    projectRoot: '/project',
    stateDir: '/project/state',
    env: {},
    settings: defaultSettings,
    agents: new Map(),
    openSession: never,
    runShell: never,
    isAlive: () => true,
    worktrees: { folder: '/project/workspaces', setup: [], include: [] },
  };
  createEffects(environment, () => {});
  createWork(environment, () => {});
  createWorkerEffects(environment, { ...defaultWorkerSettings, branch: 'main', tasks: defaultTaskSource });
  return found;
}

/** Arguments that make an effect touch everything that it can touch. */
const sample = {
  runId: 'r1',
  task: 't',
  agent: 'a',
  incarnation: 'i',
  name: 'n',
  folder: '/f',
  path: '/f',
  branch: 'b',
  onto: 'main',
  status: 'running',
  at: '2026-01-01T00:00:00.000Z',
  events: [{ type: 'run.cancelled' }],
  consumed: [1],
  unit: { step: 's', attempt: 1 },
  claim: { task: 't', token: 1 },
  fence: { runId: 'r1' },
  resolution: { branch: 'b' },
};

/** Arguments of effects that do not take an object. */
const ownSample: Readonly<Record<string, unknown>> = { 'runs.left-work': 'r1', 'workspace.lost': [sample] };

/** Kind of a key: `ref:` for `ref:main`. */
const kindOf = (key: string): string => /^[^:]*:?/.exec(key)?.[0] ?? key;

const kinds = (keys: readonly string[] = []) => [...new Set(keys.map(kindOf))].sort().join(' ');

function lineOf({ name, span, keys, awaits }: EffectDefinition<unknown, unknown>): string {
  const { reads, writes } = (awaits ?? { keys }).keys?.(ownSample[name] ?? sample) ?? {};
  return [name, awaits ? 'wait' : span, kinds(reads), kinds(writes)].join(' | ');
}

/** Rows of the tables of effects in the reference. */
function documented(): readonly string[] {
  const page = readFileSync('docs/reference/effects.md', 'utf8');
  return page.split('\n').flatMap(line => {
    const [, effect, span, reads, writes] = line.split('|').map(cell => cell.trim());
    if (!/^`\w+[.\w-]*`$/.test(effect ?? '') || !/^(short|long|wait)$/.test(span ?? '')) return [];
    const named = (cell = '') => kinds([...cell.matchAll(/`([^`]+)`/g)].map(([, key = '']) => key));
    return [[effect?.slice(1, -1), span, named(reads), named(writes)].join(' | ')];
  });
}

test('the reference lists every effect and the keys that it touches', async () => {
  const store = await filledStore();
  expect(documented().toSorted()).toEqual([...declared(store).values()].map(lineOf).sort());
});
