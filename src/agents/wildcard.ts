/** Whether a text fits a pattern in which `*` stands for anything. Takes time in proportion to both at most. */
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
 * Whether a path fits a pattern as in `.gitignore`: `**` stands for any number of folders, a pattern without a slash
 * fits at any depth, and one that fits a folder fits all that is in it. Both are relative and use `/`.
 */
export function fitsPath(pattern: string, path: string): boolean {
  const wanted = pattern.split('/').filter(part => part !== '' && part !== '.');
  const anywhere = !pattern.replace(/\/$/, '').includes('/');
  return fitsParts(anywhere ? ['**', ...wanted] : wanted, path.split('/'));
}

function fitsParts(pattern: readonly string[], path: readonly string[]): boolean {
  // The row holds, for each number of path parts, whether the pattern parts so far fit exactly these.
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
