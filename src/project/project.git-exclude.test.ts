import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryProject } from '../commands/test-support.ts';
import { excludeFromGit } from './state.ts';

const git = (cwd: string, ...args: string[]) => execFileSync('git', args, { cwd, encoding: 'utf8' });

describe('excludeFromGit', () => {
  it('excludes the workspaces of a project in a subfolder with special characters in its name', () => {
    const top = temporaryProject();
    git(top, 'init', '--quiet');
    const root = join(top, 'odd [name] #1');
    mkdirSync(join(root, '.reprise', 'workspaces'), { recursive: true });
    writeFileSync(join(root, '.reprise', 'workspaces', 'file'), '');
    expect(git(top, 'status', '--porcelain', '-uall')).not.toBe('');
    excludeFromGit(root, process.env);
    expect(git(top, 'status', '--porcelain', '-uall')).toBe('');
  });

  it('appends missing patterns to an existing file only once', () => {
    const root = temporaryProject();
    git(root, 'init', '--quiet');
    const file = join(root, '.git', 'info', 'exclude');
    writeFileSync(file, '*.log\n.reprise/workspaces-of-mine/');
    excludeFromGit(root, process.env);
    excludeFromGit(root, process.env);
    expect(readFileSync(file, 'utf8')).toBe('*.log\n.reprise/workspaces-of-mine/\n.reprise/workspaces/\n');
  });

  it('does nothing outside a repository', () => {
    expect(() => excludeFromGit(temporaryProject(), process.env)).not.toThrow();
    const root = temporaryProject();
    mkdirSync(join(root, '.git'));
    excludeFromGit(root, process.env);
    expect(readdirSync(join(root, '.git'))).toEqual([]);
  });
});
