import { execFileSync } from 'node:child_process';
import { describe, expect, it, vi } from 'vitest';
import { terminal } from '../../test/support/terminal.ts';
import { statusCommand } from './status.ts';
import { temporaryProject, testIo } from './test-support.ts';

function repository(): string {
  const root = temporaryProject({ 'issues/fix-readme.md': '# Fix the readme\n' });
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=ana', '-c', 'user.email=ana@example.com', ...args], { cwd: root });
  git('init', '--quiet', '--initial-branch=main');
  git('add', '--all');
  git('commit', '--quiet', '--message=begin');
  return root;
}

describe('reprise status --watch in a terminal', () => {
  it.each(['q', '\u0003'])('redraws in place until %j is pressed, and leaves the last view', async key => {
    const screen = terminal(60, 8);
    let press = (_: string) => {};
    let isListening = false;
    const io = testIo(repository(), {
      terminal: screen.stdout,
      isTTY: { stdin: true, stdout: true, stderr: true },
      listenToKeys: pressed => {
        press = pressed;
        isListening = true;
        return () => {
          isListening = false;
        };
      },
    });
    const ended = statusCommand({ io }, { watch: true });
    await vi.waitFor(async () => expect(await screen.text()).toContain('fix-readme  P2  ready'), 50_000);
    expect(io.printed.out).toBe('');
    expect(isListening).toBe(true);
    press('x');
    screen.resize(30, 4);
    expect((await screen.text()).split('\n').at(-1)).toBe('… 3 more lines');
    press(key);
    expect(await ended).toBe(0);
    expect(isListening).toBe(false);
    expect(await screen.text()).toBe('');
    expect(screen.listeners()).toBe(0);
    expect(io.printed.out).toContain('tasks: 1 ready');
  });

  it('ends when the process is interrupted', async () => {
    const screen = terminal(60, 8);
    const stop = new AbortController();
    const io = testIo(repository(), {
      terminal: screen.stdout,
      isTTY: { stdin: false, stdout: true, stderr: true },
      interrupt: stop.signal,
    });
    const ended = statusCommand({ io }, { watch: true });
    await vi.waitFor(async () => expect(await screen.text()).toContain('no workers'), 50_000);
    stop.abort();
    expect(await ended).toBe(0);
    expect(await screen.text()).toBe('');
  });
});
