import { expect, test } from 'vitest';
import { insideShell } from './shell-commands.ts';

test.each([
  ["/bin/bash -lc 'npm test'", 'npm test'],
  ['/usr/bin/zsh -lc ls', 'ls'],
  ['/bin/sh -c "echo it\'s \\$HOME"', "echo it's $HOME"],
  ["/bin/bash -lc 'it'\"'\"'s'", "it's"],
  ['/bin/bash -lc a\\ b', 'a b'],
  ["/bin/bash -lc ''", ''],
])('%s runs %s', (line, script) => {
  expect(insideShell(line)).toBe(script);
});

test.each([
  'npm test',
  "./bash -lc 'npm test'",
  "bash -lc 'npm test'",
  "/tmp/x/bin/bash -lc 'npm test'",
  "/bin/bash -lc 'npm test' more",
  "/bin/bash -lc 'npm test",
  '/bin/bash script.sh',
  '/bin/bash -lc',
  '',
])('%s is not unwrapped', line => {
  expect(insideShell(line)).toBe(line);
});

test('only the outermost shell is unwrapped', () => {
  expect(insideShell(`/bin/bash -lc "/bin/bash -lc 'npm test'"`)).toBe("/bin/bash -lc 'npm test'");
});
