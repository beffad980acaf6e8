import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { logOf } from './repository.ts';
import { begunIn, type Play, perform, performAndKill, say, timesBegun } from './stage.ts';
import { demoTasks, equipWorkersProject, makeWorkersProject } from './workers-project.ts';

/**
 * Two workers do three tasks at once, are killed in the middle, go on where they were, and one solves the conflict that it
 * has with the other before its work lands.
 */
export const playWorkers: Play = async stage => {
  const { root, scene } = stage;
  const worker = ['worker', '--workers', '2', '--until-idle'];
  makeWorkersProject(root);
  say(stage, `Two workers, three tasks, one kill -9 and one conflict, in a new repository:\n${root}`);
  if (!(await perform(stage, ['init']))) return undefined;
  equipWorkersProject(root);
  say(
    stage,
    [
      '\nThree tasks are on main. A script plays the agent, so no account is needed.',
      ...demoTasks.map(
        ({ id, priority, title }) => `  issues/${`${id}.md`.padEnd(15)} ${priority}  ${title}`,
      ),
      'The first two change the same line.',
    ].join('\n'),
  );
  // Whoever has landed the first takes the last: by then one has landed, and both are in the middle of another.
  await performAndKill(stage, worker, () => begunIn(scene, 'write-guide') > 0);
  say(stage, '\nkill -9: one task has landed, and the workers were busy with the others.');
  if (!(await perform(stage, worker))) return undefined;
  say(
    stage,
    [
      '\nHow often the agent was at work on each:',
      ...timesBegun(stage, {
        'say-hello': undefined,
        exclaim: 'killed in the middle, done, then the conflict',
        'write-guide': 'killed in the middle, then done',
      }),
      'What is on main now, and the line that two of them changed:',
      ...logOf(root),
      `  ${readFileSync(join(root, 'greet.mjs'), 'utf8').trimEnd()}`,
    ].join('\n'),
  );
  return 'tasks';
};
