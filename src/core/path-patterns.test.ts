import { describe, expect, test } from 'vitest';
import { hooksPattern, isProtected } from './path-patterns.ts';

describe('a protected file', () => {
  test.each([
    'reprise.yaml',
    'packages/a/reprise.yaml',
    'Reprise.YAML',
    '.reprise/agents/x.md',
    'a/.reprise/workflows/x.mjs',
    '.git',
    '.git/config',
    'vendor/x/.git/hooks/pre-commit',
    '.worktreeinclude',
    '.mcp.json',
    '.MCP.json',
    '.claude',
    '.claude/settings.json',
    '.gemini/settings.json',
    '.qwen/settings.json',
    'opencode.json',
    'opencode.jsonc',
    '.opencode/plugin/x.ts',
    '.codex/config.toml',
    '.cursor/mcp.json',
    '.github/workflows/ci.yml',
    'docs/.github/workflows/ci.yml',
    '.github/copilot-instructions.md',
    '.vscode/mcp.json',
    '.husky/pre-commit',
    '.githooks/pre-commit',
  ])('is %s', path => expect(isProtected(path)).toBe(true));

  test.each(['src/reprise.yaml.ts', '.gitignore', '.github/CODEOWNERS', 'claude/settings.json', 'README.md'])(
    'is not %s',
    path => expect(isProtected(path)).toBe(false),
  );

  test('can be added and removed, and the last pattern decides', () => {
    expect(isProtected('Makefile', ['Makefile'])).toBe(true);
    expect(isProtected('sub/Makefile', ['/Makefile'])).toBe(false);
    expect(isProtected('.vscode/mcp.json', ['!.vscode/**'])).toBe(false);
    expect(isProtected('.claude/agents/a.md', ['!.claude/**', '.claude/settings*'])).toBe(false);
    expect(isProtected('.claude/settings.json', ['!.claude/**', '.claude/settings*'])).toBe(true);
  });
});

test.each([
  ['hooks', [], '/hooks'],
  ['./tools/hooks/', [], '/tools/hooks'],
  ['/repo/hooks', ['/repo/.reprise/workspaces/x', '/repo'], '/hooks'],
  ['/etc/hooks', ['/repo'], undefined],
  ['../hooks', ['/repo'], undefined],
  ['.', ['/repo'], undefined],
])('the folder of core.hooksPath %s in %j is protected as %s', (path, checkouts, pattern) => {
  expect(hooksPattern(path, checkouts)).toBe(pattern);
});
