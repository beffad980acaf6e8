import { expect, it } from 'vitest';
import type { TracedRequest } from '../../effects/tracer.ts';
import { loadCase } from '../manifest/load.ts';
import { watchCase } from './failures.ts';

const caseOf = (toml: string) => loadCase({ file: 'one.toml', displayFile: 'one.toml', text: toml });

const request = (lane: string, name: string, args: unknown = undefined): TracedRequest => ({
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
  const happens = (effect: TracedRequest) => {
    const place = { n: 0, i: 0, phase: 'short' } as const;
    watch.tracer.granted(effect, place);
    watch.tracer.settled(effect, place, { kind: 'ok', value: undefined });
    return seen.splice(0);
  };
  return { watch, happens };
}

it('fires a trigger once, when its command reaches the nth effect with these fields', () => {
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
  expect(happens(request('b/engine#0/1', 'git.land', { onto: 'main' }))).toEqual([]);
  expect(happens(request('a/engine#0/1', 'git.land', { onto: 'other' }))).toEqual([]);
  expect(happens(request('a/engine#0/1', 'git.land', { onto: 'main' }))).toEqual([]);
  expect(watch.unfired()).toHaveLength(1);
  expect(happens(request('a', 'git.land', { onto: 'main', more: 1 }))).toEqual(['fired git.land']);
  expect(happens(request('a', 'git.land', { onto: 'main' }))).toEqual([]);
  expect(watch.unfired()).toEqual([]);
});

it('kills a command after an event of a workflow step, or after an effect', () => {
  const { watch, happens } = watched(`
[multi]
steps = [
  { name = "a", command = "run", kill_after = { event = "step.completed", step = "build" } },
  { name = "b", command = "run", kill_after = { effect = "store.append", nth = 2 } },
]
`);
  const append = (lane: string, ...steps: readonly string[]) =>
    happens(request(lane, 'store.append', { events: steps.map(step => ({ type: 'step.completed', step })) }));
  expect(append('a/engine#0', 'test')).toEqual([]);
  expect(append('b/engine#0', 'build')).toEqual([]);
  expect(append('a/engine#0', 'test', 'build')).toEqual(['killed a']);
  expect(watch.unkilled()).toEqual(['b']);
  expect(append('b/engine#0', 'test')).toEqual(['killed b']);
  expect(append('b/engine#0', 'test')).toEqual([]);
});
