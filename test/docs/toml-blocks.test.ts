import { describe, expect, it } from 'vitest';
import { loadCase } from '../../src/cases/manifest/load.ts';
import { type Block, blocksOf, pages } from './documents.ts';

const blocks = pages().flatMap(page => blocksOf(page).filter(({ language }) => language === 'toml'));

/** A block is a whole case file, or a part of one that needs a command beside it. */
const load = ({ place, text }: Block): unknown =>
  loadCase({
    file: `${place}.toml`,
    displayFile: place,
    text: /^\[+(multi|run|worker_test)/m.test(text) ? text : `${text}\n[run]\n`,
  });

describe('TOML in the documentation', () => {
  it('is there', () => {
    expect(blocks.length).toBeGreaterThan(8);
  });

  it.each(blocks)('$place is a case file', block => {
    expect(() => load(block)).not.toThrow();
  });

  it.each(['[run]\nargz = []', 'timeline = "yes"', '[[triggers]]\nstep = "a"'])(
    'is refused when it is wrong: %j',
    text => {
      expect(() => load({ place: 'x', language: 'toml', text })).toThrow();
    },
  );
});
