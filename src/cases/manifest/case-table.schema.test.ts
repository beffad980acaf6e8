import { parse } from 'smol-toml';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { caseSchema } from './case-table.ts';

const validator = z.fromJSONSchema(caseSchema as Parameters<typeof z.fromJSONSchema>[0]);
const accepts = (text: string): boolean =>
  validator.safeParse(JSON.parse(JSON.stringify(parse(text)))).success;

describe('the JSON Schema of a case file', () => {
  it('accepts a valid case file', () => {
    expect(
      accepts(`
      fidelity = "tape"
      live = ["verify"]
      [multi]
      steps = [
        { name = "init", command = "init", stdin = "y", args = "--plain", timeout = 3 },
        { name = "a", command = "run", args = ["fix"], kill_after = { effect = "store.append", nth = 2 } },
        { name = "b", command = "run", expect = { exit = 1, files = { "a" = { absent = true }, "b" = "" } } },
      ]
      [[triggers]]
      step = "a"
      label = "clock.now"
      action = { advance_clock = "1h" }
      [files]
      "README.md" = "x"
    `),
    ).toBe(true);
  });

  it.each([
    ['an unknown key at the top', 'fidelty = "tape"'],
    ['an unknown key of a command', 'multi.steps = [{ name = "a", command = "run", stdn = "y" }]'],
    ['an entry of `steps` without a command', 'multi.steps = [{ name = "a" }]'],
    ['an invalid name', 'multi.steps = [{ name = "a b", command = "run" }]'],
    ['a wrong type', 'multi.steps = [{ name = "a", command = "run", timeout = true }]'],
    ['an unknown value', 'fidelity = "tapes"'],
    ['empty `steps`', 'multi.steps = []'],
  ])('rejects %s', (_, text) => {
    expect(accepts(text)).toBe(false);
  });
});
