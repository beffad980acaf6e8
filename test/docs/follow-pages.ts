import { afterAll, describe, expect, it } from 'vitest';
import { pageAt } from './documents.ts';
import { actionsOf, patternOf, Reader, steadyText } from './walkthrough.ts';
import type { Walkthrough } from './walkthrough-pages.ts';

/** Declares a test for every action of the reader of each walkthrough. */
export const followPages = (walkthroughs: readonly Walkthrough[]): void =>
  describe.each(
    walkthroughs.map(walkthrough => ({ title: Object.keys(walkthrough).join(', '), walkthrough })),
  )('a reader of $title', ({ walkthrough }) => {
    const reader = new Reader();
    afterAll(() => reader.leave());

    it.each(actionsOfAll(walkthrough))('gets the documented result at $place', action => {
      if (action.kind === 'write') {
        reader.write(action.file, action.text);
        return;
      }
      const { output, exitCode } = reader.type(action.script, { strict: action.shown === undefined });
      if (action.shown === undefined) expect(exitCode, output).toBe(0);
      else expect(steadyText(output)).toMatch(patternOf(action.shown));
    });
  });

const actionsOfAll = (walkthrough: Walkthrough) =>
  Object.entries(walkthrough).flatMap(([file, plan]) => [
    ...(plan.setup === undefined
      ? []
      : [{ kind: 'type', place: `${file} (setup)`, script: plan.setup, shown: undefined } as const]),
    ...actionsOf(pageAt(file), plan),
  ]);
