import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAgents } from '../src/agents/definitions.ts';
import { openSession } from '../src/agents/kinds.ts';
import type { SessionFactory } from '../src/agents/session.ts';
import { type EventType, eventTypes, type HistoryEvent } from '../src/core/events.ts';
import type { Json } from '../src/core/json.ts';
import type { ResumeOptions, StartOptions } from '../src/engine/engine.ts';
import { digestsOf } from '../src/engine/history/digest.ts';
import { openEngine } from '../src/project/open-engine.ts';
import { memoryStore } from '../src/store/memory.ts';
import type { InboxMessage } from '../src/store/port.ts';
import { earlier, workflows } from '../test/history/workflows.ts';

/**
 * Records the histories that every later version must be able to read, below test/history/<version>. An existing file is
 * never overwritten.
 */
const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const target = join('test', 'history', version);
const root = mkdtempSync(join(tmpdir(), 'reprise-histories-'));

const at = () => new Date().toISOString();
const approve = (step: string, choice: string, comment?: string): InboxMessage => ({
  kind: 'approval',
  step,
  choice,
  by: 'ana',
  ...(comment ? { comment } : {}),
});
const signal = (payload: Json): InboxMessage => ({ kind: 'signal', name: 'go', payload, by: 'ana' });

/** How to produce a run that takes more than a start. Each function returns the id of the run to save. */
const stories: Readonly<Record<string, (run: Opened) => Promise<string>>> = {
  approved: async run => run.resumeWith(await run.start(), approve('gate', 'approve', 'looks good')),
  rejected: async run => run.resumeWith(await run.start(), approve('gate', 'reject')),
  signalled: async run =>
    run.resumeWith(await run.resumeWith(await run.start(), signal({ n: 1 })), signal(null)),
  cancelled: async run =>
    run.startAnd('step.started', 'held', { kind: 'cancel', reason: 'enough', by: 'ana' }),
  'child-resumed': async run => run.resume(await run.start()),
  'timed-out': async run => run.start({ wait: true }),
  interrupted: async run => run.resume(await run.startAndAbandon('step.started', 'second')),
  changed: async run =>
    run.resume(await run.start(earlier.changed ? { workflow: earlier.changed } : {}), { rerunChanged: true }),
  forked: async run => run.fork(await run.start(), 'outer/next'),
};

const git = (...args: string[]) => execFileSync('git', args, { cwd: root, stdio: 'pipe' });
git('init', '--quiet', '--initial-branch=main');
git('config', 'user.name', 'Ann');
git('config', 'user.email', 'ann@example.com');
git('commit', '--quiet', '--allow-empty', '--message=Begin');

const work = [{ run: 'echo "$REPRISE_WORKER" > mended.txt' }, { say: 'Mended.' }];
const agents = parseAgents({
  config: {
    coder: { kind: 'scripted', permissions: 'full', script: work },
    tired: { kind: 'scripted', permissions: 'full', script: work },
  },
  files: [],
});

const past = '2026-01-01T00:00:00.000Z';
let rested = false;

/** The agent `tired` hits a rate limit in its first session and succeeds in the next one. */
const sessions: SessionFactory = (request, host) => {
  if (request.agent.name !== 'tired' || rested) return openSession(request, host);
  rested = true;
  const usage = { inputTokens: 10, outputTokens: 2, cachedTokens: 0, costUsd: 0.5 };
  const error = { code: 'AGENT_LIMIT', message: 'enough for now' };
  return {
    next: async () => {
      host.onEvent({ type: 'started', sessionId: 'session-1' });
      host.onEvent({ type: 'usage', ...usage });
      return {
        kind: 'end',
        result: { kind: 'limit', resetsAt: past, error, sessionId: 'session-1', usage, denials: [] },
      };
    },
    cancel: async () => {},
    close: async () => {},
  };
};

type Opened = Awaited<ReturnType<typeof open>>;

async function open(name: string) {
  const store = memoryStore();
  const watchers = new Set<(event: HistoryEvent) => void>();
  const { engine } = await openEngine({
    root,
    env: process.env,
    store,
    agents,
    openSession: sessions,
    settings: { inboxMs: 5, graceMs: 200 },
    observe: observation => {
      if (observation.kind === 'events')
        for (const event of observation.events) for (const watch of watchers) watch(event);
    },
  });
  const workflow = workflows[name];
  if (!workflow) throw new Error(`no workflow ${name}`);
  const when = (type: EventType, step: string) =>
    new Promise<string>(resolve =>
      watchers.add(event => {
        if (event.type === type && event.step === step) resolve(event.runId);
      }),
    );
  const start = async (options: Partial<StartOptions> = {}) =>
    (await engine.start({ workflow, source: 'workflows.ts', ...options })).runId;
  const resume = async (runId: string, options: Partial<ResumeOptions> = {}) =>
    (await engine.resume({ workflow, runId, ...options })).runId;
  return {
    store,
    start,
    resume,
    fork: async (runId: string, from: string) => (await engine.fork({ workflow, runId, from })).runId,
    resumeWith: async (runId: string, message: InboxMessage) => {
      await store.post(runId, message, at());
      return resume(runId);
    },
    startAnd: async (type: EventType, step: string, message: InboxMessage) => {
      const seen = when(type, step);
      const running = start();
      await store.post(await seen, message, at());
      return running;
    },
    /** Leaves the run in the state of a process that died at that event. */
    startAndAbandon: async (type: EventType, step: string) => {
      const seen = when(type, step);
      const running = start();
      const runId = await seen;
      const events = (await store.read(runId)).map(({ seq, runId: _, at: __, ...event }) => event);
      await running;
      const owner = { incarnation: 'gone', host: 'gone', pid: 1, processStart: 'gone' };
      const copy = `${runId}-left`;
      const lease = await store.createRun({
        runId: copy,
        workflow: workflow.name,
        owner,
        expiresAt: at(),
        at: at(),
        events,
      });
      await store.release(copy, lease, 'running');
      return copy;
    },
  };
}

const kinds = new Set<EventType>();
mkdirSync(target, { recursive: true });
for (const name of Object.keys(workflows)) {
  const run = await open(name);
  const runId = await (stories[name] ?? (it => it.start()))(run);
  const history = await run.store.read(runId);
  for (const { type } of history) kinds.add(type);
  const file = join(target, `${name}.ndjson`);
  if (existsSync(file)) {
    console.error(`kept     ${file}`);
    continue;
  }
  const text = history.map(event => JSON.stringify({ ...event, runId: name })).join('\n');
  writeFileSync(file, `${text.replaceAll(root, '/project').replaceAll(runId, name)}\n`);
  writeFileSync(
    join(target, `${name}.json`),
    `${JSON.stringify({ last: history.at(-1)?.type, ...digestsOf(history) }, null, 2)}\n`,
  );
  console.error(`recorded ${file}`);
}
rmSync(root, { recursive: true, force: true });

const missing = eventTypes.filter(type => !kinds.has(type));
if (missing.length > 0) throw new Error(`no history has ${missing.join(', ')}`);
