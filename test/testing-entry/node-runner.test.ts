import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Project, recordedProject } from './recorded-project.ts';

const tests = `
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cases, replay } from 'reprise/testing';

cases('cases', test);

test('a build that passes completes the run', async () => {
  const { runs } = await replay('release', { override: { outputs: { build: {}, publish: {}, lint: {} } } });
  assert.equal(runs[0].ended.after.status, 'completed');
});
`;

let project: Project;
beforeAll(async () => {
  project = await recordedProject();
  project.write({ 'cases.test.mjs': tests });
});
afterAll(() => project?.remove());

const runTests = () => project.node(['--test', '--test-reporter=tap', 'cases.test.mjs'], { CI: 'true' });

it("runs cases and what-if replays in Node's test runner, from the installed package", async () => {
  const { code, stdout } = await runTests();
  expect(stdout).toMatch(/^# pass 3$/m);
  expect(stdout).toMatch(/^# fail 0$/m);
  expect(code).toBe(0);
  // Reprise itself prints nothing.
  expect(stdout).not.toContain('run release');
});

it("explains a failed case in the runner's output", async () => {
  const name = 'cases/quote/quote.snap';
  const snapshot = readFileSync(join(project.root, name), 'utf8');
  project.write({ [name]: snapshot.replace('Begin', 'Began') });
  const { code, stdout } = await runTests();
  project.write({ [name]: snapshot });
  expect(code).toBe(1);
  expect(stdout).toMatch(/^not ok \d+ - quote$/m);
  expect(stdout).toMatch(/^ok \d+ - release$/m);
  expect(stdout).toContain('-  Began');
  expect(stdout).toContain('reprise test quote --accept');
});
