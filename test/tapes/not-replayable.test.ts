import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../support/engine.ts';
import { CaseLab } from './support/case-lab.ts';

/** A workflow that has one more step each time it is loaded, once the folder exists. */
const caseWith = (folder: string) => `
[run]
args = ["grow"]

[files]
".reprise/workflows/grow.mjs" = '''
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { step, workflow } from 'reprise';

const folder = ${JSON.stringify(folder)};
const loads = existsSync(folder) ? readdirSync(folder).length : 0;
if (existsSync(folder)) mkdirSync(folder + '/' + loads);
const steps = Array.from({ length: 1 + loads }, (_, index) => step('step' + index, { run: () => index }));
export default workflow('grow', { steps });
'''
`;

it('a recording that does not replay replaces nothing, and says so', async () => {
  const folder = join(temporaryFolder(), 'loads');
  const lab = new CaseLab(caseWith(folder));
  expect((await lab.record()).failures).toEqual([]);
  const before = lab.files();
  mkdirSync(folder);
  const { failures } = await lab.record();
  expect(failures).toMatchObject([
    {
      kind: 'diverged',
      hint: 'the new recording does not replay, so it was not kept; the case may depend on something outside of it',
    },
  ]);
  expect(lab.files()).toEqual(before);
  expect((await lab.replay()).failures).not.toEqual([]);
});
