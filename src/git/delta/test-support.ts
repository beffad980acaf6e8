import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { openRepository, type Repository } from '../repository.ts';
import { plainEnvironment, temporaryFolder } from '../test-support.ts';
import { applyDelta } from './apply.ts';
import { stateOfCommit, worktreeState } from './capture.ts';
import { packDelta } from './pack.ts';
import type { WorktreeState } from './state.ts';

/** Repository on disk that is used with plain git commands. */
export class Checkout {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  git(...args: readonly string[]): string {
    return execFileSync('git', args, {
      cwd: this.root,
      env: plainEnvironment,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  line(...args: readonly string[]): string {
    return this.git(...args).trimEnd();
  }

  write(name: string, content: string | Buffer): void {
    mkdirSync(dirname(join(this.root, name)), { recursive: true });
    writeFileSync(join(this.root, name), content);
  }

  commit(message: string): string {
    this.git('add', '--all');
    this.git('commit', '--quiet', `--message=${message}`);
    return this.line('rev-parse', 'HEAD');
  }

  open(): Promise<Repository> {
    return openRepository({ cwd: this.root, inheritEnv: plainEnvironment });
  }

  clone(name: string): Checkout {
    const root = join(dirname(this.root), name);
    this.git('clone', '--quiet', this.root, root);
    return new Checkout(root);
  }
}

export const someBytes = (length: number, seed = 7): Buffer =>
  Buffer.from(Array.from({ length }, (_, i) => (i * seed * 31 + (i >> 3)) & 0xff));

/** Creates a repository with two commits. The second has files of every kind. */
export function furnished(): { readonly checkout: Checkout; readonly base: string } {
  const root = join(temporaryFolder('reprise delta'), 'the first');
  mkdirSync(root);
  const checkout = new Checkout(root);
  checkout.git('init', '--quiet', '--initial-branch=main');
  checkout.write('README.md', '# Hello\n');
  checkout.commit('Begin');
  checkout.write('.gitignore', '*.log\nbuild/\n');
  checkout.write('src/a.txt', lines('a', 40));
  checkout.write('src/b.txt', lines('b', 40));
  checkout.write('src/old name.txt', lines('moved', 30));
  checkout.write('doomed/file.txt', 'gone soon\n');
  checkout.write('run.sh', '#!/bin/sh\n');
  checkout.write('picture.bin', someBytes(3000));
  symlinkSync('src/a.txt', join(root, 'link'));
  const base = checkout.commit('Furnish');
  return { checkout, base };
}

export const lines = (word: string, count: number): string =>
  Array.from({ length: count }, (_, i) => `${word} ${i}\n`).join('');

/** Uses every feature of git, and leaves the worktree in the state that is hardest to capture. */
export function nastySession(checkout: Checkout): void {
  const { root } = checkout;
  checkout.write('src/a.txt', lines('a', 40).replace('a 3\n', 'a three\n'));
  renameSync(join(root, 'src/old name.txt'), join(root, 'src/neuer Name ü.txt'));
  checkout.commit('Rename and change');
  checkout.write('src/a.txt', lines('a', 40).replace('a 3\n', 'a trois\n'));
  checkout.git('commit', '--quiet', '--all', '--amend', '--message=Rename, and change in French');
  checkout.git('checkout', '--quiet', '-b', 'side', 'HEAD~1');
  checkout.write('side.txt', 'from the side\n');
  checkout.commit('On the side');
  checkout.git('checkout', '--quiet', 'main');
  checkout.git('merge', '--quiet', '--no-ff', '--message=Bring in the side', 'side');
  checkout.git('branch', '--quiet', '--delete', 'side');
  checkout.write('src/b.txt', 'stashed once\n');
  checkout.git('stash', 'push', '--quiet', '--message=first of two');
  checkout.write('src/b.txt', 'stashed twice\n');
  checkout.write('untracked for the stash.txt', 'u\n');
  checkout.git('stash', 'push', '--quiet', '--include-untracked');
  rmSync(join(root, 'doomed'), { recursive: true });
  chmodSync(join(root, 'run.sh'), 0o755);
  checkout.write('picture.bin', someBytes(4000, 11));
  rmSync(join(root, 'link'));
  symlinkSync('nowhere at all', join(root, 'link'));
  symlinkSync('..', join(root, 'src/up'));
  checkout.write('src/b.txt', lines('b', 40).replace('b 5\n', 'staged\n'));
  checkout.git('add', 'src/b.txt');
  checkout.write('src/b.txt', lines('b', 40).replace('b 5\n', 'staged\n').replace('b 30\n', 'not staged\n'));
  checkout.git('rm', '--quiet', '--cached', 'README.md');
  checkout.write('announced.txt', 'not yet staged\n');
  checkout.git('add', '--intent-to-add', 'announced.txt');
  checkout.write('deep/er/new file\twith tab.txt', 'no newline at the end');
  checkout.write('crlf.txt', 'one\r\ntwo\r\n');
  checkout.write('empty file', '');
  mkdirSync(join(root, 'hollow/inner'), { recursive: true });
  mkdirSync(join(root, 'src/none'));
  checkout.write('debug.log', 'ignored\n');
}

/** Returns everything that a user could notice in a worktree, except times and ignored files. */
export function noticeable(checkout: Checkout): Readonly<Record<string, unknown>> {
  return {
    files: filesIn(checkout.root),
    head: checkout.line('rev-parse', 'HEAD'),
    branch: checkout.line('rev-parse', '--abbrev-ref', 'HEAD'),
    index: checkout.git('ls-files', '--stage'),
    status: checkout.git('status', '--porcelain=v2', '--untracked-files=all'),
    staged: checkout.git('diff', '--cached', '--binary'),
    unstaged: checkout.git('diff', '--binary'),
    stashes: checkout.git('stash', 'list', '--format=%H %gs'),
    history: checkout.git('log', '--format=%H %P %s'),
  };
}

function filesIn(root: string, folder = ''): readonly string[] {
  return readdirSync(join(root, folder))
    .sort()
    .filter(name => name !== '.git' && !name.endsWith('.log'))
    .flatMap(name => {
      const path = join(folder, name);
      const full = join(root, path);
      const stat = lstatSync(full);
      if (stat.isSymbolicLink()) return [`${path} -> ${readlinkSync(full)}`];
      if (stat.isDirectory()) return [`${path}/`, ...filesIn(root, path)];
      return [`${path} ${(stat.mode & 0o111) !== 0 ? 'x' : '-'} ${readFileSync(full, 'base64')}`];
    });
}

export interface Recorded {
  readonly before: WorktreeState;
  readonly after: WorktreeState;
  readonly pack: Uint8Array;
  readonly objectsDir: string;
  readonly repository: Repository;
}

/** Captures the changes that a session makes in a clean checkout. */
export async function record(checkout: Checkout, session: (checkout: Checkout) => void): Promise<Recorded> {
  const repository = await checkout.open();
  const objectsDir = join(temporaryFolder('reprise objects'), 'objects');
  const commit = checkout.line('rev-parse', 'HEAD');
  const before = await stateOfCommit({
    repository,
    commit,
    branch: checkout.line('branch', '--show-current') || null,
  });
  session(checkout);
  const after = await worktreeState({ repository, folder: checkout.root, objectsDir });
  const pack = await packDelta({ repository, objectsDir, base: commit, before, after });
  return { before, after, pack, objectsDir, repository };
}

export const apply = async (
  checkout: Checkout,
  { before, after, pack }: Pick<Recorded, 'before' | 'after' | 'pack'>,
) => applyDelta({ repository: await checkout.open(), folder: checkout.root, before, after, pack });
