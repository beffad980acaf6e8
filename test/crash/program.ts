import { openEngine } from '../../src/project/open-engine.ts';
import { openStore } from '../../src/project/open-state.ts';
import type { EventStore } from '../../src/store/port.ts';
import { agents, noteFailure, workflows } from './workflows.ts';

/**
 * Starts the run in a folder, or resumes the run that is already there, and kills itself after a number of commits.
 * Usage: program.ts <folder> <workflow> <commits, 0 for never>
 */
const [folder = '', name = '', killAfter] = process.argv.slice(2);

const commits = new Set([
  'createRun',
  'append',
  'release',
  'addProcess',
  'removeProcess',
  'post',
  'renew',
  'acquire',
]);

/** Wraps a store so that the process kills itself right after a commit, before it can do anything else. */
function mortal(store: EventStore): EventStore {
  let left = Number(killAfter);
  const done = (operation: string, result: unknown) => {
    const isHeld =
      typeof result === 'object' && result !== null && 'kind' in result && result.kind === 'held';
    const isCommit = commits.has(operation) && !isHeld;
    if (isCommit && --left === 0) process.kill(process.pid, 'SIGKILL');
    return result;
  };
  return new Proxy(store, {
    get: (target, operation) => {
      const member: unknown = Reflect.get(target, operation);
      return typeof member === 'function'
        ? async (...args: unknown[]) => done(String(operation), await Reflect.apply(member, target, args))
        : member;
    },
  });
}

const store = mortal(await openStore(folder));
const { engine, close } = await openEngine({
  root: folder,
  stateDir: folder,
  env: process.env,
  store,
  agents,
  settings: { inboxMs: 5, graceMs: 500 },
  observe: observation => {
    if (observation.kind === 'events' && observation.events.some(({ type }) => type === 'step.failed'))
      noteFailure();
  },
});

const workflow = workflows[name]?.model;
if (!workflow) throw new Error(`no workflow ${name}`);
const [run] = await store.list();
if (run && (await store.read(run.runId)).some(({ type }) => type === 'step.failed')) noteFailure();
const result = run ? await engine.resume({ workflow, runId: run.runId }) : await engine.start({ workflow });
await close();
process.exitCode = result.status === 'waiting' ? 3 : 0;
