import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { agentProject, toOutcome } from '../e2e/agent-project.ts';
import type { RunningCli } from '../e2e/run-inline.ts';
import build from '../support/build.ts';

beforeAll(build);

/** Returns the peak memory of a process, in MiB. */
async function peakOf({ pid, ended }: RunningCli): Promise<number> {
  let peak = 0;
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  while (!isOver) {
    const status = statusOf(pid);
    peak = Math.max(peak, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0));
    await new Promise(resolve => setTimeout(resolve, 20));
  }
  return peak / 1024;
}

function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return '';
  }
}

describe('an agent that prints 100 MB', () => {
  it.each([
    ['in short lines', 'yes "a line of text that is not so short" | head -c 104857600; echo done'],
    ['to its standard error', 'yes "a line of text that is not so short" | head -c 104857600 >&2; echo done'],
    [
      'of events',
      `yes '{"type":"text","text":"a line of text"}' | head -n 2500000; echo '{"type":"result","text":"done"}'`,
    ],
  ])('%s is read to the end in bounded memory', async (_, script) => {
    const project = agentProject({ agents: { flood: script } });
    const run = project.begin(['run', '--agent', 'flood', '--prompt', 'x', '--json']);
    const peak = await peakOf(run);
    const outcome = toOutcome(await run.ended);
    expect(outcome.code).toBe(0);
    expect(JSON.stringify(outcome.output)).toMatch(/done"\}\}$/);
    expect(peak).toBeLessThan(400);
    expect(project.leftRunning()).toEqual([]);
    const logs = project.begin(['logs']);
    expect(await peakOf(logs)).toBeLessThan(400);
  });

  it('in one line fails in bounded memory, because its answer was cut', async () => {
    const script = 'head -c 104857600 /dev/zero | tr "\\0" x; echo; echo done';
    const project = agentProject({ agents: { flood: script } });
    const run = project.begin(['run', '--agent', 'flood', '--prompt', 'x', '--json']);
    expect(await peakOf(run)).toBeLessThan(400);
    const outcome = toOutcome(await run.ended);
    expect(outcome).toMatchObject({ code: 1, status: 'failed', error: { code: 'AGENT_PROTOCOL' } });
    expect(project.leftRunning()).toEqual([]);
  });
});
