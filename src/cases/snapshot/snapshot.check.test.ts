import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkSnapshot, type SnapshotMode } from './snapshot.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'snapshot-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const put = (name: string, text: string) => writeFile(join(folder, name), text);
const contents = async () =>
  Object.fromEntries(
    await Promise.all(
      (await readdir(folder))
        .toSorted()
        .map(async name => [name, await readFile(join(folder, name), 'utf8')] as const),
    ),
  );
const check = (actual: string, mode: SnapshotMode) =>
  checkSnapshot({
    file: join(folder, 'two.snap'),
    actual,
    mode,
    caseName: 'group/two',
    displayFile: 'cases/two.snap',
  });

const old = '--- a ---\none\ntwo\n';
const now = '--- a ---\none\n2\n';

describe('checking', () => {
  it('passes what is equal and clears up what an earlier difference left', async () => {
    await put('two.snap', old);
    await put('two.snap.new', now);
    expect(await check(old, 'check')).toEqual({ kind: 'equal' });
    expect(await contents()).toEqual({ 'two.snap': old });
  });

  it('takes a checkout with other line ends for equal', async () => {
    await put('two.snap', old.replaceAll('\n', '\r\n'));
    expect(await check(old, 'check')).toEqual({ kind: 'equal' });
  });

  it('leaves the new one beside it, and says where it differs and what to type', async () => {
    await put('two.snap', old);
    expect(await check(now, 'check')).toMatchInlineSnapshot(`
      {
        "failure": {
          "diff": "@@ -1,3 +1,3 @@ a
       --- a ---
       one
      -two
      +2
      ",
          "file": "cases/two.snap",
          "hint": "if the new snapshot is right: reprise test group/two --accept
      new snapshot: cases/two.snap.new",
          "kind": "snapshot",
          "line": 3,
          "message": "the snapshot differs: -1 +1 lines",
        },
        "kind": "failed",
      }
    `);
    expect(await contents()).toEqual({ 'two.snap': old, 'two.snap.new': now });
  });

  it('does not take a missing snapshot for granted', async () => {
    expect(await check(now, 'check')).toMatchInlineSnapshot(`
      {
        "failure": {
          "file": "cases/two.snap",
          "hint": "review it, then accept it: reprise test group/two --accept
      new snapshot: cases/two.snap.new",
          "kind": "snapshot",
          "message": "there is no snapshot cases/two.snap yet",
        },
        "kind": "failed",
      }
    `);
    expect(await contents()).toEqual({ 'two.snap.new': now });
  });

  it('names the case after the file unless told otherwise', async () => {
    const verdict = await checkSnapshot({ file: join(folder, 'x y.snap'), actual: now, mode: 'ci' });
    expect(verdict.kind === 'failed' && verdict.failure.hint).toContain("reprise test 'x y' --accept");
  });

  it('passes on what it cannot read', async () => {
    await expect(checkSnapshot({ file: folder, actual: now, mode: 'ci' })).rejects.toThrow(/EISDIR/);
  });
});

describe('accepting', () => {
  it('takes the new one over', async () => {
    await put('two.snap', old);
    await put('two.snap.new', 'stale');
    expect(await check(now, 'accept')).toEqual({ kind: 'accepted', before: 'different' });
    expect(await contents()).toEqual({ 'two.snap': now });
    expect(await check(now, 'accept')).toEqual({ kind: 'equal' });
  });

  it('makes the first one', async () => {
    expect(await check(now, 'accept')).toEqual({ kind: 'accepted', before: 'missing' });
    expect(await contents()).toEqual({ 'two.snap': now });
  });
});

describe('in CI', () => {
  it.each([
    ['equal', { 'two.snap': now, 'two.snap.new': 'stale' }],
    ['different', { 'two.snap': old }],
    ['missing', {}],
  ])('nothing is written when it is %s', async (how, files) => {
    for (const [name, text] of Object.entries(files)) await put(name, text);
    const verdict = await check(now, 'ci');
    expect(verdict.kind).toBe(how === 'equal' ? 'equal' : 'failed');
    expect(await contents()).toEqual(files);
    if (verdict.kind === 'failed') expect(verdict.failure.hint).toContain('nothing is written in CI');
  });
});
