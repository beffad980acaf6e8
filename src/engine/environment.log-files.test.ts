import { expect, test } from 'vitest';
import { attemptFileName, logFile, unitFileName } from './environment.ts';

test('every unit has its own file name', () => {
  expect(unitFileName({ step: 'fix' })).toBe('fix');
  expect(unitFileName({ step: 'fix', worker: 1 })).toBe('fix.worker_1');
  expect(unitFileName({ step: 'a:1/b/c', worker: 12 })).toBe('a.worker_1.b.c.worker_12');
  expect(attemptFileName({ step: 'deploy/build', attempt: 3 })).toBe('deploy.build.3');
});

test('all logs of a run are in one folder', () => {
  const of = { step: 'fix', worker: 0, attempt: 2 };
  expect(logFile({ stateDir: '/s', runId: 'r' }, of)).toBe('/s/logs/r/fix.worker_0.2.log');
  expect(logFile({ stateDir: '/s', runId: 'r' }, of, 'check-1')).toBe('/s/logs/r/fix.worker_0.2.check-1.log');
});
