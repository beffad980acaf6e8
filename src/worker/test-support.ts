import type { Claim } from '../store/claims.ts';
import type { Task } from './tasks/task.ts';

/** A ready task, whose title, file and version follow from its id. */
export const aTask = (id: string, given: Partial<Task> = {}): Task => ({
  id,
  title: `Do ${id}`,
  body: `Do ${id}`,
  priority: 'P2',
  state: 'ready',
  needs: [],
  file: `issues/${id}.md`,
  version: `${id}-1`,
  ...given,
});

/** A claim on the first version of a task, held by a running run. */
export const aClaim = (task: string, given: Partial<Claim> = {}): Claim => ({
  task,
  token: 3,
  state: 'held',
  version: `${task}-1`,
  runId: 'run-1',
  runStatus: 'running',
  by: 'anna',
  at: '2026-01-01T00:00:00.000Z',
  ...given,
});
