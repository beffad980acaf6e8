import { describe, expect, it } from 'vitest';
import { loadCase } from '../../src/cases/manifest/load.ts';
import { type Block, blocksOf, pages } from './documents.ts';

const blocks = pages().flatMap(page => blocksOf(page).filter(({ language }) => language === 'toml'));

/** Loads a block, which is a whole case file or a part of one without a command. */
const load = ({ place, text }: Block): unknown =>
  loadCase({
    file: `${place}.toml`,
    displayFile: place,
    text: /^\[+(multi|run|worker_test)/m.test(text) ? text : `${text}\n[run]\n`,
  });

describe('TOML in the documentation', () => {
  it('is found', () => {
    expect(blocks.length).toBeGreaterThan(8);
  });

  it.each(blocks)('at $place is a valid case file', block => {
    expect(() => load(block)).not.toThrow();
  });

  it.each(['[run]\nargz = []', 'timeline = "yes"', '[[triggers]]\nstep = "a"'])(
    'is refused if it is invalid: %j',
    text => {
      expect(() => load({ place: 'x', language: 'toml', text })).toThrow();
    },
  );
});
