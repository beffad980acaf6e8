import { expect, it } from 'vitest';
import { steadyClock } from './world.ts';

/** A machine whose wall clock can be set. */
function machine() {
  let monotonic = 500;
  let wall = 1_000_000;
  const clock = steadyClock(
    () => wall,
    () => monotonic,
  );
  return {
    now: () => clock() - 1_000_000,
    pass: (ms: number) => {
      monotonic += ms;
      wall += ms;
    },
    setWallClock: (byMs: number) => {
      wall += byMs;
    },
  };
}

it('continues with the monotonic clock if the wall clock is set back an hour', () => {
  const { now, pass, setWallClock } = machine();
  pass(2_000);
  expect(now()).toBe(2_000);
  setWallClock(-3_600_000);
  pass(3_000);
  expect(now()).toBe(5_000);
  pass(10_000);
  expect(now()).toBe(15_000);
});

it('follows the wall clock forward, as after a suspend', () => {
  const { now, pass, setWallClock } = machine();
  setWallClock(3_600_000);
  pass(1_000);
  expect(now()).toBe(3_601_000);
});

it('follows small corrections, but never goes back', () => {
  const { now, pass, setWallClock } = machine();
  pass(1_000);
  expect(now()).toBe(1_000);
  setWallClock(-200);
  expect(now()).toBe(1_000);
  pass(300);
  expect(now()).toBe(1_100);
});
