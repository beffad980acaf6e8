import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Observation } from '../../src/engine/environment.ts';
import { shell, step, workflow } from '../../src/workflow/builder/index.ts';
import { testEngine } from '../support/engine.ts';
import { endsOf, eventsOf } from './support.ts';

describe('a shell step', () => {
  it('passes its outputs to later steps as data and never as code', async () => {
    const title = shell('title', { run: 'echo \'title=$(touch owned); echo "x"\' >> "$REPRISE_OUTPUT"' });
    const use = shell('use', {
      after: { title },
      env: ({ title }) => ({ TITLE: String(title['title']) }),
      run: 'echo "got=$TITLE" >> "$REPRISE_OUTPUT"',
    });
    const check = step('check', { after: { use }, run: ({ use }) => use['got'] ?? null });
    const { engine, environment } = testEngine();
    const result = await engine.start({ workflow: workflow('w', { steps: [title, use, check] }).model });
    expect(result).toMatchObject({ status: 'completed', output: { check: '$(touch owned); echo "x"' } });
    expect(existsSync(join(environment.projectRoot, 'owned'))).toBe(false);
  });

  it('finds its run, step and attempt in the environment and runs in the project folder', async () => {
    const who = shell('who', {
      run: 'printf "run=%s\\nstep=%s\\nattempt=%s\\ncwd=%s\\n" "$REPRISE_RUN" "$REPRISE_STEP" "$REPRISE_ATTEMPT" "$PWD" >> "$REPRISE_OUTPUT"',
    });
    const outer = step('outer', { uses: workflow('child', { steps: [who] }) });
    const { engine, environment } = testEngine();
    const result = await engine.start({ workflow: workflow('w', { steps: [outer] }).model });
    expect(result).toMatchObject({
      output: {
        outer: { who: { run: result.runId, step: 'outer/who', attempt: '1', cwd: environment.projectRoot } },
      },
    });
  });

  it('reports every line as it is printed and keeps a log for each attempt', async () => {
    const seen: Observation[] = [];
    const flaky = shell('flaky', {
      retry: { attempts: 2, backoff: 1 },
      run: 'echo "attempt $REPRISE_ATTEMPT"; echo careful >&2; test "$REPRISE_ATTEMPT" = 2',
    });
    const outer = step('outer', { uses: workflow('child', { steps: [flaky] }) });
    const { engine, environment } = testEngine({
      observe: observation => void (observation.kind === 'output' && seen.push(observation)),
    });
    const { runId, status } = await engine.start({ workflow: workflow('w', { steps: [outer] }).model });
    expect(status).toBe('completed');
    expect(seen).toContainEqual({ kind: 'output', step: 'outer/flaky', stream: 'stdout', line: 'attempt 2' });
    expect(
      seen.filter(observation => observation.kind === 'output' && observation.stream === 'stderr'),
    ).toHaveLength(2);
    const logs = join(environment.stateDir, 'logs', runId);
    expect(readdirSync(logs).sort()).toEqual(['outer.flaky.1.log', 'outer.flaky.2.log']);
    expect(readFileSync(join(logs, 'outer.flaky.2.log'), 'utf8')).toContain('attempt 2');
  });

  it('fails with the exit code and leaves no process running', async () => {
    const bad = shell('bad', { run: 'sleep 60 & echo "that went wrong" >&2; exit 7' });
    const { engine, events, store } = testEngine();
    const result = await engine.start({ workflow: workflow('w', { steps: [bad] }).model });
    expect(result).toMatchObject({
      status: 'failed',
      step: 'bad',
      error: { code: 'EXIT_NONZERO', exitCode: 7 },
    });
    expect(eventsOf(events, 'step.failed')[0]?.data.error.message).toContain('that went wrong');
    expect(await store.processes(result.runId)).toEqual([]);
  });

  it('fails if its command cannot be evaluated', async () => {
    const bad = shell('bad', {
      run: 'true',
      env: () => {
        throw new Error('no such value');
      },
    });
    const { engine, events } = testEngine();
    const result = await engine.start({ workflow: workflow('w', { steps: [bad] }).model });
    expect(result).toMatchObject({ status: 'failed', error: { code: 'EXPRESSION_FAILED' } });
    expect(endsOf(events)).toEqual({ bad: 'failed' });
  });
});
