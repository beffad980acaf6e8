import { expect, test } from 'vitest';
import { packDelta } from './pack.ts';
import { patchOf } from './patch.ts';
import { apply, furnished, lines, nastySession, record, someBytes } from './test-support.ts';

test('a patch describes all changes of a session', async () => {
  const { checkout } = furnished();
  const recorded = await record(checkout, () => {
    checkout.write('src/a.txt', lines('a', 40).replace('a 3\n', 'a three\n'));
    checkout.commit('Change a line');
    checkout.git('mv', 'src/old name.txt', 'src/new name.txt');
    checkout.write('picture.bin', someBytes(10, 3));
    checkout.write('more.bin', someBytes(20, 3));
    checkout.write('announced.txt', 'Binary files a and b differ\n');
    checkout.git('add', '--intent-to-add', 'announced.txt');
  });
  expect(await patchOf(recorded)).toMatchInlineSnapshot(`
    "# head: 8f2eb87220e3 -> 8eeb360c75a6
    # commit 8eeb360c75a6 Change a line
    # staged: tree a9dcecf4fb86
    # intent to add announced.txt
    diff --git a/announced.txt b/announced.txt
    new file mode 100644
    index 0000000000000000000000000000000000000000..faebeb0c5426ec0a359aad4016c56c16ab548f07
    --- /dev/null
    +++ b/announced.txt
    @@ -0,0 +1 @@
    +Binary files a and b differ
    diff --git a/more.bin b/more.bin
    new file mode 100644
    index 0000000000000000000000000000000000000000..3a144f21ca9f916d9814e451462b6a7010ff284b
    binary, 0 -> 20 bytes
    diff --git a/picture.bin b/picture.bin
    index 6ad5cb0b3b563d3b2105457357ad71109854df43..df6c615d5f7dc2ee439ad703e6be80cbcd5e1e25 100644
    binary, 3000 -> 10 bytes
    diff --git a/src/a.txt b/src/a.txt
    index a7e3d263e827d94c92592f05b60cf0a66afd052c..036bab387fe338b966c3614f523d309ff597210e 100644
    --- a/src/a.txt
    +++ b/src/a.txt
    @@ -1,7 +1,7 @@
     a 0
     a 1
     a 2
    -a 3
    +a three
     a 4
     a 5
     a 6
    diff --git a/src/old name.txt b/src/new name.txt
    similarity index 100%
    rename from src/old name.txt
    rename to src/new name.txt
    "
  `);
});

test('a patch is the same wherever the session is applied', async () => {
  const { checkout } = furnished();
  const other = checkout.clone('the second');
  other.git('config', 'diff.noprefix', 'true');
  other.git('config', 'diff.algorithm', 'patience');
  other.write('.git/info/attributes', '*.txt -diff\n');
  const recorded = await record(checkout, nastySession);
  const patch = await patchOf(recorded);
  expect(patch).toContain('# stash On main: first of two\n');
  expect(patch).toContain('# empty folder hollow/inner\n');
  expect(await apply(other, recorded)).toMatchObject({ kind: 'exact' });
  expect(await patchOf({ ...recorded, repository: await other.open(), objectsDir: undefined })).toBe(patch);
});

test('a session without changes has an empty patch', async () => {
  const { checkout } = furnished();
  expect(await patchOf(await record(checkout, () => {}))).toBe('');
});

test('a pack contains only new objects, in the same bytes however they are stored', async () => {
  const { checkout, base } = furnished();
  const recorded = await record(checkout, () => {
    checkout.write('src/a.txt', lines('a', 40).replace('a 3\n', 'a three\n'));
    checkout.commit('Change a line');
    checkout.write('picture.bin', Buffer.concat([someBytes(3000), Buffer.from('end')]));
  });
  expect(recorded.pack.length).toBeLessThan(800);
  checkout.git('repack', '-a', '-d', '-f', '--quiet', '--window=50');
  expect(Buffer.from(await packDelta({ ...recorded, base }))).toEqual(recorded.pack);
});
