import { beforeAll, describe, expect, it } from 'vitest';
import { manyTasks, nothingLeft, workerProject } from '../e2e/worker-project.ts';
import build from '../support/build.ts';
import { rounds } from '../support/rounds.ts';

beforeAll(build, 300_000);

const tasks = manyTasks(100);
const ids = Object.keys(tasks);

/** One line per task, far enough apart for the changes to merge. */
const places = ids.map(id => `place of ${id}\n${'-\n'.repeat(8)}`).join('');

const implement = `
  sed -i "s/^place of $REPRISE_TASK$/& is taken/" shared.txt
  echo "<next>land</next>"`;

describe('5 workers that change one file at 100 places', () => {
  it.each(Array.from({ length: rounds(3) }, (_, round) => round + 1))(
    'land every change with a linear history (round %i)',
    async () => {
      const project = workerProject({ agents: { implement }, tasks, files: { 'shared.txt': places } });
      const workers = Array.from({ length: 5 }, () => project.worker(['--until-idle']).ended);
      const ends = await Promise.all(workers);
      expect(ends.map(({ code, stderr }) => (code === 0 ? code : stderr))).toEqual([0, 0, 0, 0, 0]);
      expect(project.landed().toSorted()).toEqual(ids);
      expect(project.read('shared.txt')).toBe(places.replaceAll(/^place of .*$/gm, '$& is taken'));
      expect(project.git('rev-list', '--merges', 'main')).toBe('');
      expect(project.git('rev-list', '--count', 'main')).toBe('101');
      expect(project.git('status', '--porcelain')).toBe('');
      project.git('fsck', '--strict');
      expect(await project.leftovers()).toEqual(nothingLeft);
    },
  );
});
