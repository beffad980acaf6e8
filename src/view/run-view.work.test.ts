import { describe, expect, it } from 'vitest';
import type { AgentEvent } from '../agents/session.ts';
import { stepInto } from '../terminal/run/summary-parts.ts';
import {
  completed,
  expanded,
  failed,
  historyOf,
  noon,
  ofWorker,
  runStarted,
  sessionEnded,
  sessionStarted,
  started,
  threeWorkers,
  workspaceSaved,
} from '../terminal/test-support.ts';
import { costText, knownCost } from './cost.ts';
import { type RunView, viewOf } from './run-view.ts';

const usage = (costUsd: number | null): AgentEvent => ({
  type: 'usage',
  inputTokens: 100,
  outputTokens: 10,
  cachedTokens: 0,
  costUsd,
});

const statuses = (view: RunView) => view.steps.map(({ path, status }) => `${path} ${status}`);

describe('the view of a step with copies', () => {
  it('lists the copies below the step and before the next one', () => {
    const view = viewOf(historyOf([...threeWorkers, [900, ofWorker(1, completed('fix'))]]));
    expect(statuses(view)).toEqual([
      'fix running',
      'fix:0 running',
      'fix:1 completed',
      'fix:2 running',
      'lint pending',
    ]);
    expect(view.counts).toMatchObject({ running: 2, completed: 1, pending: 1 });
    expect(view.overlap.most).toBe(3);
    expect(view.step('fix:1')).toMatchObject({ isWorker: true, depth: 1 });
  });

  it('has the matrix values of each copy and the steps inside it', () => {
    const view = viewOf(
      historyOf([
        [0, runStarted('repair', ['docs'])],
        [0, started('docs')],
        [0, expanded('docs', 2, [{ file: 'a.md' }, { file: 'b.md' }])],
        [10, ofWorker(1, started('docs'))],
        [10, started('docs:1/build')],
        [500, completed('docs:1/build')],
      ]),
    );
    expect(statuses(view)).toEqual([
      'docs running',
      'docs:0 pending',
      'docs:1 running',
      'docs:1/build completed',
    ]);
    expect(view.step('docs:1')?.item).toEqual({ file: 'b.md' });
    // A step with children does not count as running itself.
    expect(view.overlap).toMatchObject({ most: 1, workedMs: 490 });
  });

  it('keeps completed copies on a resume, and does not count the time in between', () => {
    const view = viewOf(
      historyOf([
        ...threeWorkers,
        [1000, ofWorker(0, completed('fix'))],
        [1000, ofWorker(1, completed('fix'))],
        [2000, ofWorker(2, failed('fix'))],
        [2000, failed('fix')],
        [2000, { type: 'run.failed', data: { error: { code: 'X', message: 'm' }, step: 'fix:2' } }],
        [9000, { type: 'run.resumed', data: { invalidated: ['fix', 'fix:2'], steps: ['fix', 'lint'] } }],
        [9000, ofWorker(2, started('fix', 2))],
      ]),
    );
    expect(statuses(view)).toEqual([
      'fix running',
      'fix:0 completed',
      'fix:1 completed',
      'fix:2 running',
      'lint pending',
    ]);
    expect(view.step('fix')?.durationMs(noon + 9500)).toBe(2500);
  });
});

describe('the cost of agents', () => {
  it('is the sum of ended sessions and of the usage reports of running ones', () => {
    const view = viewOf(historyOf([...threeWorkers, [300, ofWorker(0, sessionEnded('fix', 0.25))]]));
    view.agent({ step: 'fix', worker: 1 }, usage(0.1));
    view.agent({ step: 'fix', worker: 1 }, usage(0.2));
    expect(costText(view.step('fix:1')?.spent ?? view.spent)).toBe('$0.30');
    expect(costText(view.step('fix')?.spent ?? view.spent)).toBe('$0.55');
    for (const event of historyOf([[400, ofWorker(1, sessionEnded('fix', 0.35))]])) view.apply(event);
    expect(costText(view.spent)).toBe('$0.60');
    expect(knownCost(view.spent)).toBe(0.6);
  });

  it('is a lower bound if some of it is unknown, and unknown if all of it is', () => {
    const one = viewOf(historyOf([...threeWorkers, [300, ofWorker(0, sessionEnded('fix', null))]]));
    expect(costText(one.spent)).toBe('cost unknown');
    const two = viewOf(
      historyOf([
        ...threeWorkers,
        [300, ofWorker(0, sessionEnded('fix', null))],
        [300, ofWorker(1, sessionEnded('fix', 0.5))],
      ]),
    );
    expect(costText(two.spent)).toBe('>= $0.50');
    expect(knownCost(two.spent)).toBeNull();
  });

  it('treats the cost of an interrupted session as unknown', () => {
    const view = viewOf(
      historyOf([
        [0, runStarted('repair', ['fix'])],
        [0, started('fix')],
        [0, sessionStarted('fix')],
        [500, { type: 'run.resumed', data: {} }],
        [500, { type: 'step.interrupted', step: 'fix', attempt: 1, data: {} }],
        [500, started('fix')],
        [500, sessionStarted('fix')],
        [900, sessionEnded('fix', 0.5)],
      ]),
    );
    expect(costText(view.spent)).toBe('>= $0.50');
  });

  it('is zero without agents', () => {
    const view = viewOf(historyOf([[0, runStarted('repair', ['a'])]]));
    expect([costText(view.spent), knownCost(view.spent)]).toEqual(['', 0]);
  });
});

describe('the work of a copy', () => {
  it('has the workspace with its saved changes and the session to continue', () => {
    const view = viewOf(historyOf([...threeWorkers, [700, ofWorker(2, workspaceSaved('fix'))]]));
    const step = view.step('fix:2');
    expect(step?.work.workspace).toMatchObject({
      branch: 'reprise/fix-2',
      saved: { files: 2 },
    });
    expect(step && stepInto(step, '..')).toBe('cd ../.reprise/workspaces/fix-2 && claude --resume id-2');
  });

  it('offers a session only if its agent can resume it', () => {
    const codex = viewOf(
      historyOf([...threeWorkers, [300, ofWorker(0, sessionStarted('fix', 'codex', 'x'))]]),
    );
    const scripted = viewOf(
      historyOf([...threeWorkers, [300, ofWorker(0, sessionStarted('fix', 'scripted', 'x'))]]),
    );
    const offers = [codex, scripted].map(view => {
      const step = view.step('fix:0');
      return step && stepInto(step, '.');
    });
    expect(offers).toEqual(['cd .reprise/workspaces/fix-0 && codex resume x', undefined]);
  });

  it('pauses at a limit and resumes the same session', () => {
    const paused = historyOf([
      ...threeWorkers,
      [300, ofWorker(0, sessionEnded('fix', 0, { outcome: 'limit' }))],
      [
        300,
        {
          type: 'step.paused',
          step: 'fix',
          worker: 0,
          attempt: 1,
          data: { reason: 'plan', delayMs: 60_000 },
        },
      ],
    ]);
    const view = viewOf(paused);
    expect(view.step('fix:0')).toMatchObject({
      status: 'waiting',
      waits: [{ on: 'limit', until: noon + 60_300, reason: 'plan' }],
    });
    for (const event of historyOf([[60_300, ofWorker(0, sessionStarted('fix', 'claude', 'id-0'))]]))
      view.apply(event);
    expect(view.step('fix:0')).toMatchObject({ status: 'running', waits: [] });
  });
});
