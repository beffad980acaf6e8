import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Backend, memoryBackend } from '../../src/cases/explore/backends.ts';
import { type PerformedCase, performCase } from '../../src/cases/explore/perform.ts';
import { type PreparedCase, prepareCase } from '../../src/cases/explore/prepare.ts';
import { everyFault, oneAfterAnother } from '../../src/cases/explore/sources.ts';
import { findCases } from '../../src/cases/manifest/find.ts';
import { readCase } from '../../src/cases/manifest/load.ts';
import { testContext } from '../../src/cli/other-commands.ts';
import { runProgram } from '../../src/cli/program.ts';
import { nonPreemptivePolicy } from '../../src/effects/explore/policies.ts';
import { crashAtEvery } from './crash-points.ts';
import { exploredCases, exploreOn } from './explored-cases.ts';

describe('two workers, one of which is killed', () => {
  let prepared: PreparedCase;
  let backend: Backend;
  let trial: PerformedCase;

  beforeAll(async () => {
    const context = testContext({ env: process.env, cwd: process.cwd() }, runProgram);
    const [found] = findCases({ names: ['workers/until_idle'], cwd: process.cwd() }).cases;
    if (!found) throw new Error('no such case');
    prepared = await prepareCase(found, readCase(found), context);
    backend = await memoryBackend(prepared);
    const [{ policy }] = oneAfterAnother(prepared.manifest.steps.map(({ name }) => name));
    trial = await performCase({ backend, policy });
  });
  afterAll(() => prepared.close());

  it('reach the same outcome whenever it is killed, because the other takes over', async () => {
    const mishaps = everyFault(trial, { crashes: true, faults: [] }).filter((_, at) => at % 5 === 0);
    expect(mishaps.length).toBeGreaterThan(50);
    for (const adversity of mishaps) {
      const policy = { ...nonPreemptivePolicy, isCalm: true };
      const { verdict, forms } = await performCase({ backend, policy, adversity });
      expect([verdict, forms?.work, adversity]).toEqual([{ kind: 'passed' }, trial.forms?.work, adversity]);
    }
  }, 60_000);
});

describe('crashes of the recorded schedule', () => {
  it('let each of two workers resume its own run, so that the recorded conflict resolution fits', async () => {
    const { failure, crashPoints } = await crashAtEvery('workers/landing_conflict', {
      on: 'memory',
      most: 60,
    });
    expect(failure).toBeUndefined();
    expect(crashPoints).toMatchObject({ inconclusive: 0, otherEnds: 0 });
  }, 60_000);

  it('keep the recorded order, because no command overtakes one that is being restarted', async () => {
    const { failure, crashPoints } = await crashAtEvery('landing/landing_conflict', {
      on: 'memory',
      most: 60,
    });
    expect(failure).toBeUndefined();
    expect(crashPoints).toMatchObject({ inconclusive: 0, otherEnds: 0 });
  }, 60_000);

  it('do not use up the rework that a task is allowed', async () => {
    const { failure, crashPoints } = await crashAtEvery('workers/verify_fails', { on: 'memory', most: 40 });
    expect(failure).toBeUndefined();
    expect(crashPoints).toMatchObject({ inconclusive: 0, otherEnds: 0 });
  }, 60_000);

  it('can come before other schedules, or be the only ones', async () => {
    const [, found] = exploredCases.find(([title]) => title === 'endings/crash_and_resume') ?? [];
    if (!found) throw new Error('no such case');
    const limits = { on: 'memory', crashes: true, schedules: 120, forMs: Number.POSITIVE_INFINITY } as const;
    const [only] = (await exploreOn(found, { ...limits, crashPoints: 'only' })).worlds;
    const [first] = (await exploreOn(found, { ...limits, crashPoints: 'first' })).worlds;
    for (const explored of [only, first])
      expect(explored?.crashPoints).toMatchObject({
        tried: explored?.crashPoints?.of,
        inconclusive: 0,
        otherEnds: 0,
      });
    expect(only?.crashPoints?.of).toBeGreaterThan(50);
    expect(only?.schedules).toBeLessThan(4 + (only?.crashPoints?.of ?? 0));
    expect(first?.schedules).toBe(120);
  }, 60_000);

  it('are counted, with the limit that stopped them', async () => {
    const { crashPoints, endedBy } = await crashAtEvery('workers/two_once', { on: 'memory', most: 6 });
    expect(crashPoints?.tried).toBeLessThan(6);
    expect(crashPoints?.of).toBeGreaterThan(100);
    expect(endedBy).toBe('schedules');
  }, 60_000);
});
