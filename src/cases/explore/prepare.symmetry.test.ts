import { describe, expect, it } from 'vitest';
import { load } from '../manifest/test-support.ts';
import { symmetricSteps } from './prepare.ts';

const steps = (...all: readonly string[]) => `[multi]\nsteps = [\n${all.join(',\n')}\n]\n`;
const worker = (step: string, name: string, rest = '') =>
  `{ name = "${step}", command = "worker", args = ["--once", "--name", "${name}"], concurrent_group = "g"${rest} }`;

describe('commands of a case', () => {
  it('are symmetric if they differ only in their names', () => {
    const all = steps(worker('a', 'ann'), worker('b', 'bob'), worker('c', 'cid'));
    expect(symmetricSteps(load(all))).toEqual([['a', 'b', 'c']]);
  });

  it.each([
    ['their arguments', steps(worker('a', 'ann'), worker('b', 'bob').replace('--once', '--until-idle'))],
    ['their environment', steps(worker('a', 'ann'), worker('b', 'bob', ', env = { X = "1" }'))],
    ['their expectations', steps(worker('a', 'ann'), worker('b', 'bob', ', expect = { exit = 1 }'))],
    ['their group', steps(worker('a', 'ann'), worker('b', 'bob').replace('"g"', '"h"'))],
  ])('are not symmetric if they differ in %s', (_, all) => {
    expect(symmetricSteps(load(all))).toEqual([]);
  });

  it('are symmetric if they have the same triggers', () => {
    const trigger = (step: string) =>
      `[[triggers]]\nstep = "${step}"\nlabel = "main_head_sha"\naction = "exit"\n`;
    const all = steps(worker('a', 'ann'), worker('b', 'bob'));
    expect(symmetricSteps(load(all + trigger('a') + trigger('b')))).toEqual([['a', 'b']]);
    expect(symmetricSteps(load(all + trigger('a')))).toEqual([]);
  });

  it('are not symmetric if the case mentions one of them', () => {
    const all = steps(worker('a', 'ann'), worker('b', 'bob'));
    const about = (text: string) => symmetricSteps(load(`${all}[files]\n"README.md" = "${text}"\n`));
    expect(about('Ask ann.')).toEqual([]);
    expect(about('There is a channel.')).toEqual([]);
    expect(about('The channel.')).toEqual([['a', 'b']]);
  });

  it('are not symmetric outside of a concurrent group', () => {
    const alone = ['a', 'b'].map(name => `{ name = "${name}", command = "worker" }`);
    expect(symmetricSteps(load(steps(...alone)))).toEqual([]);
  });
});
