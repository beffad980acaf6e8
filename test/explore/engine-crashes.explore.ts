import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { brokenIn, formsOf } from '../../src/cases/explore/endings.ts';
import { scatter } from '../../src/effects/explore/policies.ts';
import { digestsOf } from '../../src/engine/history/digest.ts';
import { Promises } from '../crash/promises.ts';
import { workflows } from '../crash/workflows.mjs';
import { KilledRun } from './killed-run.ts';

const root = mkdtempSync(join(tmpdir(), 'reprise-engine-crashes-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Where a process is killed: which of those that a run needs, and after how many of its effects. */
interface Point {
  readonly life: number;
  readonly after: number;
}

/** What a run comes to that nobody kills. */
interface Clean {
  readonly name: string;
  readonly digest: string;
  readonly end: string;
  readonly entries: readonly number[];
}

/** Of how many points the process that resumes is killed too, and at how many of its moments each. */
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
    expect(run.ledger.violation).toBeUndefined();
    return { name, digest, end: formsOf(await run.ending()).all, entries: run.entries };
  } finally {
    run.forget();
  }
}

/** `false`: the process that resumes had ended before it could be killed. */
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
    // A function that waited for somebody starts from the top in its next life, so only first lives can be held to it.
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
    expect([context, run.ledger.violation, brokenIn(ending)]).toEqual([context, undefined, undefined]);
    expect([context, formsOf(ending).all]).toEqual([context, end]);
    return isKilledAgain;
  } finally {
    run.forget();
  }
}

const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index + 1);

describe('a run that is killed after any effect or event, as the crash test has them', () => {
  it.each(Object.keys(workflows))(
    '%s: comes to the same, does nothing twice, and leaves nothing behind',
    async name => {
      const clean = await playClean(name);
      const points = clean.entries.flatMap((count, life) => upTo(count).map(after => ({ life, after })));
      expect(points.length).toBeGreaterThan(20);
      for (const point of points) await killAt(clean, point);

      const { points: most, moments } = again[name] ?? usual;
      let killedAgain = 0;
      for (const [at, point] of scatter(points).slice(0, most).entries())
        for (const moment of upTo(moments)) {
          // A resume is about as long as what it goes on with.
          const next = 1 + (((at * moments + moment) * 7) % Math.max(...clean.entries));
          if (await killAt(clean, point, next)) killedAgain++;
        }
      expect(killedAgain).toBeGreaterThan(0.2 * Math.min(most, points.length) * moments);
    },
  );
});
