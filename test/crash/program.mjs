import { openEngine, openStore } from '../../dist/project/open-engine.js';
import { agents, noteFailure, workflows } from './workflows.mjs';

/**
 * Starts the run in a folder, or resumes the one that is there, and is killed after so many commits.
 * Usage: program.mjs <folder> <workflow> <commits, 0 for never>
 */
const [folder, name, killAfter] = process.argv.slice(2);

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

/** The process does not get to do anything between the commit and its end. */
function mortal(store) {
  let left = Number(killAfter);
  const done = (operation, result) => {
    const isCommit = commits.has(operation) && result?.kind !== 'held';
    if (isCommit && --left === 0) process.kill(process.pid, 'SIGKILL');
    return result;
  };
  return new Proxy(store, {
    get: (target, operation) =>
      typeof target[operation] === 'function'
        ? async (...args) => done(operation, await target[operation](...args))
        : target[operation],
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

const workflow = workflows[name].model;
const [run] = await store.list();
if (run && (await store.read(run.runId)).some(({ type }) => type === 'step.failed')) noteFailure();
const result = run ? await engine.resume({ workflow, runId: run.runId }) : await engine.start({ workflow });
await close();
process.exitCode = result.status === 'suspended' ? 3 : 0;
