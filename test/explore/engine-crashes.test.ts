import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { brokenIn, formsOf } from '../../src/cases/explore/outcomes.ts';
import { scatter } from '../../src/effects/explore/policies.ts';
import { digestsOf } from '../../src/engine/history/digest.ts';
import { Promises } from '../crash/promises.ts';
import { workflows } from '../crash/workflows.ts';
import { KilledRun } from './killed-run.ts';

const root = mkdtempSync(join(tmpdir(), 'reprise-engine-crashes-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A point at which a process is killed. */
interface Point {
  /** Index of the process among those that execute the run. */
  readonly life: number;
  /** Number of effects that the process finishes before the kill. */
  readonly after: number;
}

/** Result of a run without a kill. */
interface Clean {
  readonly name: string;
  readonly digest: string;
  readonly end: string;
  readonly entries: readonly number[];
}

/** Number of points for which the resuming process is killed too, and number of kills for each. */
const again: Readonly<Record<string, { readonly points: number; readonly moments: number }>> = {
  agents: { points: 10, moments: 1 },
  shell: { points: 15, moments: 1 },
  workers: { points: 15, moments: 1 },
};
const usual = { points: Number.POSITIVE_INFINITY, moments: 3 };

const fresh = (name: string): KilledRun => new KilledRun(name, join(root, name));

async function playClean(name: string): Promise<Clean> {
  const run = fresh(name);
  try {
    await run.live();
    await run.seeThrough();
    const { outcome: digest } = digestsOf(await run.history());
    expect(run.monitor.violation).toBeUndefined();
    return { name, digest, end: formsOf(await run.ending()).all, entries: run.entries };
  } finally {
    run.forget();
  }
}

/** Kills a run at a point and checks its outcome. Returns `false` if the resuming process ended before its own kill. */
async function killAt({ name, digest, end }: Clean, { life, after }: Point, next = 0): Promise<boolean> {
  const context = `${name}, life ${life + 1} killed after ${after} effects${next > 0 ? `, the next after ${next}` : ''}`;
  const run = fresh(name);
  try {
    for (let before = 0; before < life; before++) {
      await run.live();
      await run.answer();
    }
    expect([context, await run.live(after)]).toEqual([context, 'killed']);
    const promises = new Promises(run, digest);
    await promises.remember();
    // A resumed function that was waiting starts again from the top, so only the first process can be checked for this.
    if (life === 0) promises.expectOnce(context);
    let isKilledAgain = false;
    if (next > 0 && !(await run.hasEnded())) {
      await run.answer();
      isKilledAgain = (await run.live(next)) === 'killed';
      if (isKilledAgain) await promises.remember();
    }
    await run.seeThrough();
    await promises.check(context);
    const ending = await run.ending();
    expect([context, run.monitor.violation, brokenIn(ending)]).toEqual([context, undefined, undefined]);
    expect([context, formsOf(ending).all]).toEqual([context, end]);
    return isKilledAgain;
  } finally {
    run.forget();
  }
}

const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index + 1);

describe('a run of the crash test that is killed after any effect or event', () => {
  it.each(Object.keys(workflows))(
    '%s reaches the same outcome, does nothing twice, and leaves nothing behind',
    async name => {
      const clean = await playClean(name);
      const points = clean.entries.flatMap((count, life) => upTo(count).map(after => ({ life, after })));
      expect(points.length).toBeGreaterThan(20);
      for (const point of points) await killAt(clean, point);

      const { points: most, moments } = again[name] ?? usual;
      let killedAgain = 0;
      for (const [at, point] of scatter(points).slice(0, most).entries())
        for (const moment of upTo(moments)) {
          // A resume has about as many effects as the process before it.
          const next = 1 + (((at * moments + moment) * 7) % Math.max(...clean.entries));
          if (await killAt(clean, point, next)) killedAgain++;
        }
      expect(killedAgain).toBeGreaterThan(0.2 * Math.min(most, points.length) * moments);
    },
  );
});
