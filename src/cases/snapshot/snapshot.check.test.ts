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
  it('passes if both are equal, and removes the file of an earlier difference', async () => {
    await put('two.snap', old);
    await put('two.snap.new', now);
    expect(await check(old, 'check')).toEqual({ kind: 'equal' });
    expect(await contents()).toEqual({ 'two.snap': old });
  });

  it('ignores line endings of a checkout', async () => {
    await put('two.snap', old.replaceAll('\n', '\r\n'));
    expect(await check(old, 'check')).toEqual({ kind: 'equal' });
  });

  it('writes the new snapshot beside the old one, and reports the diff and the command to type', async () => {
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
          "hint": "if the new snapshot is correct: reprise test group/two --accept
      the new snapshot: cases/two.snap.new",
          "kind": "snapshot",
          "line": 3,
          "message": "the snapshot differs: -1 +1 lines",
        },
        "kind": "failed",
      }
    `);
    expect(await contents()).toEqual({ 'two.snap': old, 'two.snap.new': now });
  });

  it('fails if the snapshot is missing', async () => {
    expect(await check(now, 'check')).toMatchInlineSnapshot(`
      {
        "failure": {
          "file": "cases/two.snap",
          "hint": "review the new snapshot and accept it: reprise test group/two --accept
      the new snapshot: cases/two.snap.new",
          "kind": "snapshot",
          "message": "the snapshot cases/two.snap does not exist yet",
        },
        "kind": "failed",
      }
    `);
    expect(await contents()).toEqual({ 'two.snap.new': now });
  });

  it('names the case after the file by default', async () => {
    const verdict = await checkSnapshot({ file: join(folder, 'x y.snap'), actual: now, mode: 'ci' });
    expect(verdict.kind === 'failed' && verdict.failure.hint).toContain("reprise test 'x y' --accept");
  });

  it('rejects if the file cannot be read', async () => {
    await expect(checkSnapshot({ file: folder, actual: now, mode: 'ci' })).rejects.toThrow(
      'is a folder, not a regular file',
    );
  });
});

describe('accepting', () => {
  it('replaces the snapshot', async () => {
    await put('two.snap', old);
    await put('two.snap.new', 'stale');
    expect(await check(now, 'accept')).toEqual({ kind: 'accepted', before: 'different' });
    expect(await contents()).toEqual({ 'two.snap': now });
    expect(await check(now, 'accept')).toEqual({ kind: 'equal' });
  });

  it('creates the first snapshot', async () => {
    expect(await check(now, 'accept')).toEqual({ kind: 'accepted', before: 'missing' });
    expect(await contents()).toEqual({ 'two.snap': now });
  });
});

describe('in CI', () => {
  it.each([
    ['equal', { 'two.snap': now, 'two.snap.new': 'stale' }],
    ['different', { 'two.snap': old }],
    ['missing', {}],
  ])('writes nothing if the snapshot is %s', async (how, files) => {
    for (const [name, text] of Object.entries(files)) await put(name, text);
    const verdict = await check(now, 'ci');
    expect(verdict.kind).toBe(how === 'equal' ? 'equal' : 'failed');
    expect(await contents()).toEqual(files);
    if (verdict.kind === 'failed') expect(verdict.failure.hint).toContain('CI never writes files');
  });
});
