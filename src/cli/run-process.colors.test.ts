import { describe, expect, it } from 'vitest';
import { colorsOf } from './run-process.ts';

const streams = { out: { isTTY: false }, err: { isTTY: true } };

describe('colorsOf', () => {
  it.each([
    [{}, { out: false, err: true }],
    [{ TERM: 'dumb' }, { out: false, err: false }],
    [{ FORCE_COLOR: '1' }, { out: true, err: true }],
    [{ FORCE_COLOR: '' }, { out: true, err: true }],
    [{ FORCE_COLOR: '0' }, { out: false, err: false }],
    [{ NO_COLOR: '1' }, { out: false, err: false }],
    [
      { NO_COLOR: '', FORCE_COLOR: 'true' },
      { out: true, err: true },
    ],
    [
      { NO_COLOR: '1', FORCE_COLOR: '1' },
      { out: false, err: false },
    ],
  ])('%j gives %j', (env, colors) => {
    expect(colorsOf(env, streams)).toEqual(colors);
  });
});
