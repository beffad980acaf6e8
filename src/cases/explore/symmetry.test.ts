import { describe, expect, it } from 'vitest';
import { load } from '../manifest/test-support.ts';
import { alikeSteps } from './symmetry.ts';

const steps = (...all: readonly string[]) => `[multi]\nsteps = [\n${all.join(',\n')}\n]\n`;
const worker = (step: string, name: string, rest = '') =>
  `{ name = "${step}", command = "worker", args = ["--once", "--name", "${name}"], concurrent_group = "g"${rest} }`;

describe('steps', () => {
  it('are alike if they differ in nothing but their names', () => {
    const all = steps(worker('a', 'ann'), worker('b', 'bob'), worker('c', 'cid'));
    expect(alikeSteps(load(all))).toEqual([['a', 'b', 'c']]);
  });

  it.each([
    ['their arguments', steps(worker('a', 'ann'), worker('b', 'bob').replace('--once', '--until-idle'))],
    ['their surroundings', steps(worker('a', 'ann'), worker('b', 'bob', ', env = { X = "1" }'))],
    ['what is expected of them', steps(worker('a', 'ann'), worker('b', 'bob', ', expect = { exit = 1 }'))],
    ['their group', steps(worker('a', 'ann'), worker('b', 'bob').replace('"g"', '"h"'))],
  ])('are not alike if they differ in %s', (_, all) => {
    expect(alikeSteps(load(all))).toEqual([]);
  });

  it('are alike if the same is done to each of them', () => {
    const trigger = (step: string) =>
      `[[triggers]]\nstep = "${step}"\nlabel = "main_head_sha"\naction = "exit"\n`;
    const all = steps(worker('a', 'ann'), worker('b', 'bob'));
    expect(alikeSteps(load(all + trigger('a') + trigger('b')))).toEqual([['a', 'b']]);
    expect(alikeSteps(load(all + trigger('a')))).toEqual([]);
  });

  it('are not alike if something in the case speaks of one of them', () => {
    const all = steps(worker('a', 'ann'), worker('b', 'bob'));
    const about = (text: string) => alikeSteps(load(`${all}[files]\n"README.md" = "${text}"\n`));
    expect(about('Ask ann.')).toEqual([]);
    expect(about('There is a channel.')).toEqual([]);
    expect(about('The channel.')).toEqual([['a', 'b']]);
  });

  it('that run alone are not alike', () => {
    const alone = ['a', 'b'].map(name => `{ name = "${name}", command = "worker" }`);
    expect(alikeSteps(load(steps(...alone)))).toEqual([]);
  });
});
