import { describe, expect, it } from 'vitest';
import type { Tracer } from '../../src/effects/tracer.ts';
import { Lab, plainEnvironment } from '../../src/git/test-support.ts';
import { liveHost, openEngine } from '../../src/project/open-engine.ts';
import { memoryStore } from '../../src/store/memory.ts';
import type { EventStore } from '../../src/store/port.ts';
import { Purse } from '../../src/worker/budget.ts';
import type { WorkerNews, WorkerRules } from '../../src/worker/contract.ts';
import { createWorkerEffects } from '../../src/worker/effects/effects.ts';
import { builtInsOf } from '../../src/worker/steps/built-in.ts';
import { Worker } from '../../src/worker/worker.ts';
import { defaultTaskSource, defaultWorkerSettings } from '../../src/workflow/yaml/config-workers.ts';
import { scripted } from '../engine/work/support.ts';

const rules: WorkerRules = { ...defaultWorkerSettings, branch: 'main', tasks: defaultTaskSource };

const agents = new Map([
  [
    'implement',
    scripted([{ write: { path: 'new.txt', content: 'new\n' } }, { say: '<next>land</next>' }], {
      name: 'implement',
    }),
  ],
]);

/** Point at which an effect is granted or settled for the nth time. */
interface Moment {
  readonly effect: string;
  readonly when: 'granted' | 'settled';
  readonly time?: number;
}

/** Calls back at that point. No effect proceeds before the callback has returned. */
function at({ effect, when, time = 1 }: Moment, callback: () => void): Tracer {
  let times = 0;
  const passed = (what: Moment['when']) => (request: { readonly effect: { readonly name: string } }) => {
    if (request.effect.name === effect && what === when && ++times === time) callback();
  };
  return { granted: passed('granted'), settled: passed('settled') };
}

const both = (...tracers: readonly Tracer[]): Tracer => ({
  granted: (...args) => {
    for (const tracer of tracers) tracer.granted(...args);
  },
  settled: (...args) => {
    for (const tracer of tracers) tracer.settled(...args);
  },
});

/** Runs one worker until it has finished a task, and returns its reports. A lost wake-up would leave it asleep forever. */
async function workOnce(lab: Lab, { tracer, store }: { tracer: Tracer; store: EventStore }) {
  const reports: string[] = [];
  const interrupt = new AbortController();
  let worker: Worker | undefined;
  const { engine, environment } = await openEngine({
    root: lab.root,
    env: plainEnvironment,
    agents,
    store,
    host: liveHost(tracer),
    builtIns: opened => {
      const effects = createWorkerEffects(opened, rules, new Purse({ maxTasks: 1 }));
      const made = new Worker({
        engine: () => engine,
        environment: opened,
        effects,
        rules,
        options: { interrupt: interrupt.signal },
        report: news => reports.push(wordsOf(news)),
      });
      worker = made;
      return builtInsOf({ effects, rules, canWait: false, show: made.show });
    },
  });
  await engine.prepare();
  const ready = worker as Worker;
  const { tasks } = await environment.world.open('worker', () => ready.run());
  return { reports, tasks: tasks.map(({ task, error }) => error?.message ?? task) };
}

const wordsOf = (news: WorkerNews): string =>
  news.kind === 'woke' ? `woke: ${news.what}` : news.kind === 'ended' ? `ended: ${news.reason}` : news.kind;

const commitTask = (lab: Lab) => () => {
  lab.commit(lab.root, 'issues/new.md', '# New\n');
};

const asleepUntilMain = ['enlisted', 'sleeps', 'woke: main', 'ended: max-tasks'];
const neverAsleep = ['enlisted', 'ended: max-tasks'];

describe('a worker picks up a task that is committed', () => {
  it.each<[string, Moment, readonly string[]]>([
    ['before it reads the tasks', { effect: 'tasks.read', when: 'granted' }, neverAsleep],
    ['right after it has read the tasks', { effect: 'tasks.read', when: 'settled' }, asleepUntilMain],
    ['after it has read the claims', { effect: 'claims.list', when: 'settled' }, asleepUntilMain],
    ['just before it sleeps', { effect: 'worker.show', when: 'settled', time: 2 }, asleepUntilMain],
    ['when it goes to sleep', { effect: 'main_head_sha', when: 'granted' }, asleepUntilMain],
  ])('%s', async (_, moment, expected) => {
    const lab = new Lab();
    const tracer = at(moment, commitTask(lab));
    const { reports, tasks } = await workOnce(lab, { tracer, store: memoryStore() });
    expect(reports).toEqual(expected);
    expect(tasks).toEqual(['new']);
    expect(lab.git('log', '-1', '--format=%s')).toBe('New');
  });
});

describe('a worker that lost a task to a person picks up a task that is committed', () => {
  it.each<[string, Moment, readonly string[]]>([
    ['after dispatch has read the tasks', { effect: 'tasks.read', when: 'settled', time: 2 }, neverAsleep],
    ['after dispatch found nothing', { effect: 'runs.left-work', when: 'settled' }, neverAsleep],
    ['after the last read of the tasks', { effect: 'tasks.read', when: 'settled', time: 3 }, asleepUntilMain],
    ['when it goes to sleep', { effect: 'main_head_sha', when: 'granted' }, asleepUntilMain],
  ])('%s', async (_, moment, expected) => {
    const lab = new Lab();
    lab.commit(lab.root, 'issues/old.md', '# Old\n');
    const store = memoryStore();
    // A person claims the task first, so dispatch finds nothing.
    const takeTask = at({ effect: 'agent.take-slot', when: 'granted' }, () => {
      void store.claims.take({
        task: 'old',
        seen: 0,
        version: '1',
        runId: null,
        by: 'ana',
        at: '2026-01-01T00:00:00.000Z',
      });
    });
    const tracer = both(takeTask, at(moment, commitTask(lab)));
    const { reports, tasks } = await workOnce(lab, { tracer, store });
    expect(reports).toEqual(expected);
    expect(tasks).toEqual(['new']);
  });
});

describe('a sleeping worker', () => {
  it('wakes up if a claim is released just as it goes to sleep', async () => {
    const lab = new Lab();
    lab.commit(lab.root, 'issues/old.md', '# Old\n');
    const store = memoryStore();
    const at2026 = '2026-01-01T00:00:00.000Z';
    await store.claims.take({ task: 'old', seen: 0, version: '1', runId: null, by: 'ana', at: at2026 });
    const tracer = at({ effect: 'main_head_sha', when: 'granted' }, () => {
      void store.claims.settle({ task: 'old', state: 'released', at: at2026 });
    });
    const { reports, tasks } = await workOnce(lab, { tracer, store });
    expect(reports).toEqual(['enlisted', 'sleeps', 'woke: claims', 'ended: max-tasks']);
    expect(tasks).toEqual(['old']);
  });
});
