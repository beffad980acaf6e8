import { expect, it } from 'vitest';
import type { TracedRequest } from '../../effects/tracer.ts';
import { loadCase } from '../manifest/load.ts';
import { watchCase } from './triggers.ts';

const caseOf = (toml: string) => loadCase({ file: 'one.toml', displayFile: 'one.toml', text: toml });

const asked = (lane: string, name: string, args: unknown = undefined): TracedRequest => ({
  lane: { name: lane },
  effect: { name, span: 'short', perform: () => undefined },
  args,
  keys: {},
});

function watched(toml: string) {
  const seen: string[] = [];
  const watch = watchCase({
    manifest: caseOf(toml),
    onTrigger: ({ label }) => seen.push(`fired ${label}`),
    onKill: step => seen.push(`killed ${step}`),
  });
  const happens = (request: TracedRequest) => {
    const place = { n: 0, i: 0, phase: 'short' } as const;
    watch.tracer.granted(request, place);
    watch.tracer.settled(request, place, { kind: 'ok', value: undefined });
    return seen.splice(0);
  };
  return { watch, happens };
}

it('a trigger fires once, when its step reaches the effect with those fields for the n-th time', () => {
  const { watch, happens } = watched(`
[multi]
steps = [{ name = "a", command = "run" }, { name = "b", command = "run" }]
[[triggers]]
step = "a"
label = "git.land"
fields = { onto = "main" }
nth = 2
action = "exit"
`);
  expect(happens(asked('b/engine#0/1', 'git.land', { onto: 'main' }))).toEqual([]);
  expect(happens(asked('a/engine#0/1', 'git.land', { onto: 'other' }))).toEqual([]);
  expect(happens(asked('a/engine#0/1', 'git.land', { onto: 'main' }))).toEqual([]);
  expect(watch.unfired()).toHaveLength(1);
  expect(happens(asked('a', 'git.land', { onto: 'main', more: 1 }))).toEqual(['fired git.land']);
  expect(happens(asked('a', 'git.land', { onto: 'main' }))).toEqual([]);
  expect(watch.unfired()).toEqual([]);
});

it('a step is killed after an event of a step of its workflow, or after an effect', () => {
  const { watch, happens } = watched(`
[multi]
steps = [
  { name = "a", command = "run", kill_after = { event = "step.completed", step = "build" } },
  { name = "b", command = "run", kill_after = { effect = "store.append", nth = 2 } },
]
`);
  const append = (lane: string, ...steps: readonly string[]) =>
    happens(asked(lane, 'store.append', { events: steps.map(step => ({ type: 'step.completed', step })) }));
  expect(append('a/engine#0', 'test')).toEqual([]);
  expect(append('b/engine#0', 'build')).toEqual([]);
  expect(append('a/engine#0', 'test', 'build')).toEqual(['killed a']);
  expect(watch.unkilled()).toEqual(['b']);
  expect(append('b/engine#0', 'test')).toEqual(['killed b']);
  expect(append('b/engine#0', 'test')).toEqual([]);
});
