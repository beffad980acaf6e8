import { describe, expect, it } from 'vitest';
import { labWithWork, landIn, subjectsOnMain } from '../test-support.ts';

const passes = { passed: true, output: '' };

describe('a fence', () => {
  it('refuses to land work whose claim was taken over during the verification', async () => {
    const { lab, work } = labWithWork();
    const tip = lab.commit(work, 'b.txt', 'b\n');
    lab.commit(lab.root, 'main.txt', 'main\n');
    const before = lab.fingerprint();
    const claim = { token: 1 };
    const mine = claim.token;
    const landing = await landIn(lab, {
      mayLand: async () => claim.token === mine,
      verify: {
        path: lab.workspace('scratch'),
        run: async () => {
          claim.token = 2;
          return passes;
        },
      },
    });
    expect(landing).toEqual({
      kind: 'fenced',
      target: 'main',
      why: 'another process took over the work during the landing',
      hint: 'nothing to do: the new owner lands the work',
    });
    expect(lab.fingerprint()).toEqual(before);
    expect(lab.git('rev-parse', 'work')).toBe(tip);
    expect(await landIn(lab, { mayLand: async () => claim.token === 2 })).toMatchObject({ kind: 'landed' });
  });

  it('refuses even if the target is not checked out', async () => {
    const { lab, work } = labWithWork();
    lab.git('switch', '--quiet', '--detach');
    lab.commit(work, 'b.txt', 'b\n');
    const main = lab.git('rev-parse', 'main');
    expect(await landIn(lab, { mayLand: async () => false })).toMatchObject({ kind: 'fenced' });
    expect(lab.git('rev-parse', 'main')).toBe(main);
  });

  it('is checked once, after the verification and before the target moves', async () => {
    const { lab, work } = labWithWork();
    const commit = lab.commit(work, 'b.txt', 'b\n');
    const main = lab.git('rev-parse', 'main');
    const seen: string[] = [];
    const run = async () => {
      seen.push('verified');
      return passes;
    };
    const mayLand = async () => {
      seen.push(lab.git('rev-parse', 'main'));
      return true;
    };
    const landing = await landIn(lab, { mayLand, verify: { path: lab.workspace('scratch'), run } });
    expect(landing).toMatchObject({ kind: 'landed', commit });
    expect(seen).toEqual(['verified', main]);
  });

  it('is checked again before every retry of the move', async () => {
    const { lab, work } = labWithWork();
    lab.git('switch', '--quiet', '--detach');
    lab.commit(work, 'b.txt', 'b\n');
    let asked = 0;
    const mayLand = async () => {
      if (asked++ === 0) lab.git('update-ref', 'refs/heads/main', lab.commit(lab.root, 'race.txt', 'x\n'));
      return true;
    };
    expect(await landIn(lab, { mayLand })).toMatchObject({ kind: 'landed' });
    expect(asked).toBe(2);
    expect(subjectsOnMain(lab)).toEqual(['Begin', 'Write race.txt', 'Write b.txt']);
  });

  it('fails the landing without moving the target if its check throws', async () => {
    const { lab, work } = labWithWork();
    lab.commit(work, 'b.txt', 'b\n');
    const before = lab.fingerprint();
    const mayLand = async () => {
      throw new Error('the store is gone');
    };
    await expect(landIn(lab, { mayLand })).rejects.toThrow('the store is gone');
    expect(lab.fingerprint()).toEqual(before);
  });

  it('is not checked if there is nothing to land', async () => {
    const { lab } = labWithWork();
    const mayLand = async () => {
      throw new Error('asked');
    };
    expect(await landIn(lab, { mayLand })).toMatchObject({ kind: 'nothing-to-land' });
  });
});
