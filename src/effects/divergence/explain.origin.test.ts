import { describe, expect, it } from 'vitest';
import { Origin, sourceOf } from './explain.ts';

const stack = (...frames: readonly string[]) => ({
  stack: ['Error', ...frames.map(frame => `    at ${frame}`)].join('\n'),
});

describe('the source of a call', () => {
  it('is the first frame outside the effects boundary and Node', () => {
    const frames = stack(
      'Conductor.effect (/repo/src/effects/conductor/conductor.ts:10:5)',
      'send (file:///repo/src/effects/world.ts:30:9)',
      'process.processTicksAndRejections (node:internal/process/task_queues:95:5)',
      'async land (file:///repo/src/engine/land%20it.ts:88:11)',
      'async /repo/src/engine/run.ts:3:4',
    );
    expect(sourceOf(frames, '/repo')).toBe('src/engine/land it.ts:88');
    expect(sourceOf(frames)).toBe('/repo/src/engine/land it.ts:88');
    expect(sourceOf(frames, '/elsewhere')).toBe('/repo/src/engine/land it.ts:88');
  });

  it('can be in a bundle, in an anonymous function, or unknown', () => {
    expect(sourceOf(stack('file:///repo/dist/shared/running.js:1234:56'), '/repo')).toBe(
      'dist/shared/running.js:1234',
    );
    expect(sourceOf(stack('async file:///repo/my.workflow.ts:7:1'), '/repo')).toBe('my.workflow.ts:7');
    expect(sourceOf(stack('new Promise (<anonymous>)'))).toBeUndefined();
    expect(sourceOf({ stack: '' })).toBeUndefined();
  });

  it('leaves Error.stackTraceLimit unchanged', () => {
    const before = Error.stackTraceLimit;
    const call = () => new Origin(call);
    expect(sourceOf(call())).toMatch(/origin\.test\.ts:\d+$/);
    expect(Error.stackTraceLimit).toBe(before);
  });
});
