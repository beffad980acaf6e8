/** Whether a text matches a pattern with `*` wildcards. Takes at most time proportional to the product of both lengths. */
export function fitsWildcard(pattern: string, text: string): boolean {
  let inPattern = 0;
  let inText = 0;
  let star = -1;
  let retry = 0;
  while (inText < text.length) {
    if (pattern[inPattern] === '*') {
      star = inPattern++;
      retry = inText;
    } else if (pattern[inPattern] === text[inText]) {
      inPattern++;
      inText++;
    } else if (star >= 0) {
      inPattern = star + 1;
      inText = ++retry;
    } else return false;
  }
  while (pattern[inPattern] === '*') inPattern++;
  return inPattern === pattern.length;
}

/**
 * Whether a path matches a pattern as in `.gitignore`: `**` matches any number of folders, a pattern without a slash
 * matches at any depth, and a pattern that matches a folder matches its contents. Both are relative and use `/`.
 */
export function fitsPath(pattern: string, path: string): boolean {
  const wanted = pattern.split('/').filter(part => part !== '' && part !== '.');
  const anywhere = !pattern.replace(/\/$/, '').includes('/');
  return fitsParts(anywhere ? ['**', ...wanted] : wanted, path.split('/'));
}

function fitsParts(pattern: readonly string[], path: readonly string[]): boolean {
  // `row[n]` tells whether the pattern parts so far match exactly the first n path parts.
  let row = [true, ...path.map(() => false)];
  for (const wanted of pattern) {
    const before = row;
    row = before.map((_, used) =>
      wanted === '**'
        ? before.slice(0, used + 1).some(Boolean)
        : used > 0 && before[used - 1] === true && fitsWildcard(wanted, path[used - 1] ?? ''),
    );
  }
  return row.some(Boolean);
}

/** Files that decide which code runs later: settings of Reprise, of agents and editors, hooks and CI. */
const alwaysProtected: readonly string[] = [
  'reprise.yaml',
  '.reprise/**',
  '.git',
  '.worktreeinclude',
  '.mcp.json',
  '.claude/**',
  '.gemini/**',
  '.qwen/**',
  'opencode.json*',
  '.opencode/**',
  '.codex/**',
  '.cursor/**',
  '.github/workflows/**',
  '.github/copilot*',
  '.vscode/**',
  '.husky/**',
  '.githooks/**',
];

/**
 * Whether a path, relative to the root of the workspace, is protected. `protect` adds patterns to the list, and `!`
 * removes what a pattern matches; the last pattern that matches decides. A pattern matches at any depth unless it starts
 * with `/`. Upper and lower case are the same, because they are on some file systems.
 */
export function isProtected(path: string, protect: readonly string[] = []): boolean {
  const folded = fold(path);
  const last = [...alwaysProtected, ...protect].findLast(pattern => fitsAnywhere(pattern, folded));
  return last !== undefined && !last.startsWith('!');
}

function fitsAnywhere(pattern: string, path: string): boolean {
  const positive = fold(pattern.replace(/^!/, ''));
  return fitsPath(positive.startsWith('/') ? positive : `**/${positive}`, path);
}

const fold = (text: string): string => text.normalize('NFC').toLowerCase();

/**
 * Returns the pattern of the folder with git hooks, as in `core.hooksPath`. A relative one is relative to the root. An
 * absolute one counts if it is inside one of the checkouts.
 */
export function hooksPattern(hooksPath: string, checkouts: readonly string[]): string | undefined {
  const root = checkouts.find(checkout => hooksPath.startsWith(`${checkout}/`));
  const inside = root === undefined ? hooksPath : hooksPath.slice(root.length + 1);
  const parts = inside.split('/').filter(part => part !== '' && part !== '.');
  const isOutside = (root === undefined && hooksPath.startsWith('/')) || parts.includes('..');
  return isOutside || parts.length === 0 ? undefined : `/${parts.join('/')}`;
}
