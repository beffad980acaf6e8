import { join } from 'node:path';
import { openStore } from '../../project/open-engine.ts';
import { makeFanOutProject } from './fan-out-project.ts';
import { logOf } from './repository.ts';
import { begunIn, type Play, perform, performAndKill, say, timesBegun } from './stage.ts';

/**
 * Five agents work at once in workspaces of their own, the process is killed in the middle, and a resume goes on without
 * doing finished work again, picks the best result and lands it.
 */
export const playFanOut: Play = async stage => {
  const { root, scene } = stage;
  makeFanOutProject(root);
  say(
    stage,
    [
      `Five agents at once and one kill -9, in a new repository:\n${root}`,
      '\nIts test fails. Three copies of one agent try to mend it, each in a worktree of',
      'its own, while two others write documentation. The smallest change that passes',
      'lands, then what was written. Scripts play the agents, so no account is needed.',
    ].join('\n'),
  );
  await performAndKill(
    stage,
    ['run', 'fix'],
    async () => begunIn(scene, 'fix:2') > 0 && (await areFourDone(root)),
  );
  say(stage, '\nkill -9: four agents were done, and one was in the middle of its work.');
  if (!(await perform(stage, ['resume']))) return undefined;
  say(
    stage,
    [
      '\nHow often each really ran:',
      ...timesBegun(stage, {
        reproduce: 'its first attempt failed, and it was tried again',
        'fix:0': undefined,
        'fix:1': undefined,
        'fix:2': 'killed in the middle, then done',
        'docs:0': undefined,
        'docs:1': undefined,
      }),
      'What is on main now:',
      ...logOf(root),
    ].join('\n'),
  );
  return 'history';
};

/** By the history, which is what a resume goes by: an agent that has ended may not be in it yet. */
async function areFourDone(root: string): Promise<boolean> {
  const store = await openStore(join(root, '.reprise', 'state'), { readonly: true }).catch(() => undefined);
  if (!store) return false;
  try {
    const [run] = await store.list();
    const history = run ? await store.read(run.runId) : [];
    return (
      history.filter(({ type, worker }) => type === 'step.completed' && worker !== undefined).length === 4
    );
  } finally {
    await store.close();
  }
}
