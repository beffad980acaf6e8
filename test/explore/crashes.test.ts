import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { memoryTheatre, type Theatre } from '../../src/cases/explore/backends.ts';
import { type PerformedCase, performCase } from '../../src/cases/explore/perform.ts';
import { type PreparedCase, prepareCase } from '../../src/cases/explore/prepare.ts';
import { everyMishap, oneAfterAnother } from '../../src/cases/explore/sources.ts';
import { findCases } from '../../src/cases/manifest/find.ts';
import { readCase } from '../../src/cases/manifest/load.ts';
import { testContext } from '../../src/cli/other-commands.ts';
import { runProgram } from '../../src/cli/program.ts';
import { batonPolicy } from '../../src/effects/explore/policies.ts';
import { exploredCases, exploreOn } from './cases.ts';
import { crashAtEvery } from './crash-points.ts';

describe('two workers, one of which is killed', () => {
  let prepared: PreparedCase;
  let theatre: Theatre;
  let trial: PerformedCase;

  beforeAll(async () => {
    const context = testContext({ env: process.env, cwd: process.cwd() }, runProgram);
    const [found] = findCases({ names: ['workers/until_idle'], cwd: process.cwd() }).cases;
    if (!found) throw new Error('no such case');
    prepared = await prepareCase(found, readCase(found), context);
    theatre = await memoryTheatre(prepared);
    const [{ policy }] = oneAfterAnother(prepared.manifest.steps.map(({ name }) => name));
    trial = await performCase({ theatre, policy });
  });
  afterAll(() => prepared.close());

  it('come to the same whenever it is, and one takes over from the other', async () => {
    const mishaps = everyMishap(trial, { crashes: true, faults: [] }).filter((_, at) => at % 5 === 0);
    expect(mishaps.length).toBeGreaterThan(50);
    for (const adversity of mishaps) {
      const policy = { ...batonPolicy, isCalm: true };
      const { verdict, forms } = await performCase({ theatre, policy, adversity });
      expect([verdict, forms?.work, adversity]).toEqual([{ kind: 'passed' }, trial.forms?.work, adversity]);
    }
  }, 60_000);
});

describe('crashes of the recorded order', () => {
  it('have two workers go on with what each was at, so that the recorded solution of their conflict fits', async () => {
    const { failure, crashPoints } = await crashAtEvery('workers/landing_conflict', {
      on: 'memory',
      most: 60,
    });
    expect(failure).toBeUndefined();
    expect(crashPoints).toMatchObject({ inconclusive: 0, otherEnds: 0 });
  }, 60_000);

  it('leave the order as it was: nobody gets ahead while a step is started again', async () => {
    const { failure, crashPoints } = await crashAtEvery('landing/landing_conflict', {
      on: 'memory',
      most: 60,
    });
    expect(failure).toBeUndefined();
    expect(crashPoints).toMatchObject({ inconclusive: 0, otherEnds: 0 });
  }, 60_000);

  it('cost no task a rework that it is allowed', async () => {
    const { failure, crashPoints } = await crashAtEvery('workers/verify_fails', { on: 'memory', most: 40 });
    expect(failure).toBeUndefined();
    expect(crashPoints).toMatchObject({ inconclusive: 0, otherEnds: 0 });
  }, 60_000);

  it('come before other orders if they are to, or without any', async () => {
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

  it('are counted, and it is said what kept them from being tried all', async () => {
    const { crashPoints, endedBy } = await crashAtEvery('workers/two_once', { on: 'memory', most: 6 });
    expect(crashPoints?.tried).toBeLessThan(6);
    expect(crashPoints?.of).toBeGreaterThan(100);
    expect(endedBy).toBe('schedules');
  }, 60_000);
});
