import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { claudeProtocol } from '../../dist/agents/claude.js';
import { noUsage } from '../../dist/agents/usage.js';
import { openRunJournal } from '../../dist/commands/journal/run-journal.js';
import { createSessionRecorder } from '../../dist/engine/recording/recorder.js';
import { openEngine } from '../../dist/index.js';
import { createRedactor } from '../../dist/world/redact.js';
import { contend } from '../lib/contend.mjs';
import { median } from '../lib/stats.mjs';
import { shapes } from './workflows.mjs';

const surroundings = { env: process.env, err: text => process.stderr.write(text), now: () => Date.now() };

/** What a run has for itself: a store, an engine, and a journal if it keeps one. */
async function open(root, isJournalled) {
  mkdirSync(root, { recursive: true });
  const project = { root, stateDir: join(root, '.reprise', 'state'), commandSuffix: '' };
  const journal = isJournalled
    ? openRunJournal({ io: surroundings, project, command: { command: 'run', args: ['chain'] } })
    : undefined;
  const { engine, close } = await openEngine({
    root,
    env: {},
    ...(journal ? { host: journal.host } : {}),
  });
  return {
    engine,
    folder: join(project.stateDir, 'journal'),
    close: async () => {
      await close();
      await journal?.close(0);
    },
  };
}

const sizeOf = folder =>
  readdirSync(folder, { recursive: true })
    .map(name => statSync(join(folder, name)))
    .filter(stats => stats.isFile())
    .reduce((sum, { size }) => sum + size, 0);

/** What a coding agent printed in a session, without what was said to it. */
function printedIn(name) {
  const file = new URL(`../../src/agents/fixtures/streams/${name}.ndjson`, import.meta.url);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  const isTwoWay = lines.some(line => line.startsWith('> '));
  return isTwoWay ? lines.flatMap(line => (line.startsWith('< ') ? line.slice(2) : [])) : lines;
}

/** What of it is told to whoever holds the session. */
function eventsOf(lines, request) {
  const rule = () => ({ kind: 'decided', decision: { kind: 'allow' } });
  const protocol = claudeProtocol({ request, rule, now: () => Date.now() });
  let { state } = protocol.open();
  return lines.flatMap(line => {
    const step = protocol.take(state, line);
    state = step.state;
    return step.signals.flatMap(signal => (signal.kind === 'event' ? signal.event : []));
  });
}

async function recordSession(folder, events, request) {
  const recorder = createSessionRecorder({
    folder,
    redactor: createRedactor({ paths: [], secrets: [] }),
    repository: async () => undefined,
    projectRoot: folder,
    task: ({ step }) => step,
    snapshotProject: false,
    openSession: (_, host) => ({
      next: async () => {
        for (const event of events) host.onEvent(event);
        const text = events.findLast(({ type }) => type === 'text')?.text ?? '';
        return { kind: 'end', result: { kind: 'ok', text, usage: noUsage, denials: [] } };
      },
      cancel: async () => {},
      close: async () => {},
    }),
    runShell: () => Promise.reject(new Error('no script runs here')),
  });
  const host = {
    onEvent: () => {},
    graceMs: 0,
    inheritEnv: {},
    marker: {},
    unit: { step: 'fix', attempt: 1, number: 0 },
  };
  const session = recorder.openSession(request, host);
  await session.next();
  await session.close();
  await recorder.close();
}

await contend({
  /** `<shape> <steps> <rounds>`: with a journal and without one, in turn, in one process that is warm. */
  async cost({ folder, args: [shape, steps, rounds] }) {
    const workflow = shapes[shape](Number(steps));
    const times = { plain: [], journalled: [] };
    const work = { plain: [], journalled: [] };
    let bytes = 0;
    for (let round = 0; round <= Number(rounds); round++) {
      for (const name of round % 2 === 0 ? ['plain', 'journalled'] : ['journalled', 'plain']) {
        const opened = await open(join(folder, `${name}-${round}`), name === 'journalled');
        const cpuBefore = process.cpuUsage();
        const before = performance.now();
        const { status } = await opened.engine.start({ workflow, maxConcurrentWorkers: 10 });
        const took = performance.now() - before;
        const { user, system } = process.cpuUsage(cpuBefore);
        await opened.close();
        if (status !== 'completed') throw new Error(`the run ended ${status}`);
        if (name === 'journalled') bytes = sizeOf(opened.folder);
        // The first round is cold.
        if (round === 0) continue;
        times[name].push(took);
        work[name].push((user + system) / 1000);
      }
    }
    return {
      plainMs: median(times.plain),
      journalMs: median(times.journalled),
      // Of runs that came right after each other: the disk is never the same for long.
      costOfPairs: median(times.plain.map((plain, round) => times.journalled[round] / plain)) - 1,
      cpuMs: median(work.journalled) - median(work.plain),
      plainCpuMs: median(work.plain),
      bytes,
    };
  },

  /** `<stream>...`: how much of what an agent printed is kept of its session. */
  async size({ folder, args: names }) {
    const permissions = { preset: 'edit', allow: [], deny: [] };
    const request = {
      agent: { name: 'coder', kind: 'claude', permissions },
      prompt: 'Do it.',
      cwd: folder,
      permissions,
    };
    let raw = 0;
    for (const name of names) {
      const lines = printedIn(name);
      raw += Buffer.byteLength(lines.join('\n'));
      await recordSession(folder, eventsOf(lines, request), request);
    }
    return { raw, kept: sizeOf(join(folder, 'sessions')) };
  },
});
