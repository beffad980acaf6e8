import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isBranchName, safeSegment, workspaceBranch, workspacePath } from './names.ts';

const gitTakes = (name: string): boolean =>
  !name.includes('\0') && spawnSync('git', ['check-ref-format', `refs/heads/${name}`]).status === 0;

/** Names made of characters and words that are special to git. */
const tricky = fc
  .array(fc.constantFrom(...'a ~^:?*[\\@{}./-\n\t\x7f"\'é', '..', '.lock', '@{', '//', 'HEAD', 'feat/x'), {
    minLength: 1,
    maxLength: 5,
  })
  .map(parts => parts.join(''));

describe('a branch name', () => {
  it('is accepted only if git accepts it', () => {
    const ours = new Set(['@', 'HEAD']);
    fc.assert(
      fc.property(tricky, name => {
        expect(isBranchName(name)).toBe(gitTakes(name) && !name.startsWith('-') && !ours.has(name));
      }),
      { numRuns: 400 },
    );
  });

  it.each(['feat/x', 'reprise/fix/7/build/worker_0', 'ümläut', "it's", 'a$(b)'])('may be %s', name => {
    expect(isBranchName(name) && gitTakes(name)).toBe(true);
  });

  it.each(['', '-x', '--force', '@', 'HEAD', '../up', 'a b', 'a\nb', 'a.lock', '/a'])(
    'cannot be %j',
    name => {
      expect(isBranchName(name)).toBe(false);
    },
  );
});

describe('a workspace name', () => {
  it('contains workflow, run, step and copy', () => {
    const name = { workflow: 'fix', run: 'bcd', step: 'deploy/build', worker: 2 };
    expect(workspaceBranch(name)).toBe('reprise/fix/bcd/deploy/build/worker_2');
    expect(workspacePath('/w', name)).toBe('/w/fix/bcd/deploy/build/worker_2');
    expect(workspaceBranch({ workflow: 'fix', run: 'bcd', step: 'build' })).toBe('reprise/fix/bcd/build');
  });

  it('is a valid branch and a path below its folder, whatever its parts are', () => {
    const part = fc.oneof(tricky, fc.string({ unit: 'binary' }), fc.constantFrom('../..', '/etc', '-rf'));
    fc.assert(
      fc.property(fc.record({ workflow: part, run: part, step: part }), name => {
        expect(isBranchName(workspaceBranch(name))).toBe(true);
        expect(workspacePath('/w', name)).toMatch(/^\/w\/[^/]+\/[^/]+\/[^/]/);
        expect(workspacePath('/w', name).split('/')).not.toContain('..');
      }),
    );
  });

  it('differs if any part differs', () => {
    const names = [
      'a b',
      'a-b',
      'a/b',
      'a:b',
      ' a b',
      'A b',
      '',
      '-',
      '..',
      'é',
      'x'.repeat(61),
      'x'.repeat(62),
    ];
    expect(new Set(names.map(name => safeSegment(name))).size).toBe(names.length);
    const worker = workspaceBranch({ workflow: 'w', run: 'r', step: 's', worker: 0 });
    expect(workspaceBranch({ workflow: 'w', run: 'r', step: 's/worker_0' })).not.toBe(worker);
  });
});
