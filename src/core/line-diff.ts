/** One line of a diff. */
export interface DiffLine {
  readonly kind: 'same' | 'removed' | 'added';
  readonly text: string;
}

/** Limit beyond which all lines count as replaced: a larger diff is slow to compute and unreadable. */
const mostEdits = 1000;

/** Returns the shortest diff from `before` to `after` (Myers' algorithm). */
export function diffLines(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  const head = commonStart(before, after);
  const tail = commonStart(before.slice(head).reverse(), after.slice(head).reverse());
  const same = (lines: readonly string[]): readonly DiffLine[] => lines.map(text => ({ kind: 'same', text }));
  return [
    ...same(before.slice(0, head)),
    ...removedFirst(
      middleDiff(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ),
    ...same(before.slice(before.length - tail)),
  ];
}

function commonStart(a: readonly string[], b: readonly string[]): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}

function middleDiff(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  const trace = shortestEdit(before, after);
  return trace ? walkBack(before, after, trace) : allReplaced(before, after);
}

const allReplaced = (before: readonly string[], after: readonly string[]): readonly DiffLine[] => [
  ...before.map(text => ({ kind: 'removed', text }) as const),
  ...after.map(text => ({ kind: 'added', text }) as const),
];

/** Furthest index into `before` that was reached on each diagonal. */
type Furthest = ReadonlyMap<number, number>;

const at = (furthest: Furthest, diagonal: number): number => furthest.get(diagonal) ?? -1;

/** Whether the furthest path to a diagonal ends with an added line, that is, comes from the diagonal above. */
const comesFromAbove = (furthest: Furthest, diagonal: number, edits: number): boolean =>
  diagonal === -edits || (diagonal !== edits && at(furthest, diagonal - 1) < at(furthest, diagonal + 1));

/** Returns the state before each edit, or `undefined` if there are more than `mostEdits`. */
function shortestEdit(before: readonly string[], after: readonly string[]): readonly Furthest[] | undefined {
  const trace: Furthest[] = [];
  let furthest: Furthest = new Map([[1, 0]]);
  for (let edits = 0; edits <= Math.min(before.length + after.length, mostEdits); edits++) {
    trace.push(furthest);
    const next = new Map<number, number>();
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      let x = comesFromAbove(furthest, diagonal, edits)
        ? at(furthest, diagonal + 1)
        : at(furthest, diagonal - 1) + 1;
      while (x < before.length && x - diagonal < after.length && before[x] === after[x - diagonal]) x++;
      next.set(diagonal, x);
      if (x >= before.length && x - diagonal >= after.length) return trace;
    }
    furthest = next;
  }
  return undefined;
}

function walkBack(
  before: readonly string[],
  after: readonly string[],
  trace: readonly Furthest[],
): readonly DiffLine[] {
  const lines: DiffLine[] = [];
  let x = before.length;
  let y = after.length;
  for (let edits = trace.length - 1; edits >= 0; edits--) {
    const furthest = trace[edits] ?? new Map();
    const diagonal = x - y;
    const from = comesFromAbove(furthest, diagonal, edits) ? diagonal + 1 : diagonal - 1;
    const fromX = edits === 0 ? 0 : at(furthest, from);
    const fromY = edits === 0 ? 0 : fromX - from;
    while (x > fromX && y > fromY) {
      lines.push({ kind: 'same', text: before[--x] ?? '' });
      y--;
    }
    if (edits === 0) break;
    if (x > fromX) lines.push({ kind: 'removed', text: before[--x] ?? '' });
    else lines.push({ kind: 'added', text: after[--y] ?? '' });
  }
  return lines.reverse();
}

/** Within one hunk, moves the removed lines before the added ones. */
function removedFirst(lines: readonly DiffLine[]): readonly DiffLine[] {
  const ordered: DiffLine[] = [];
  let added: DiffLine[] = [];
  for (const line of lines) {
    if (line.kind === 'added') added.push(line);
    else if (line.kind === 'removed') ordered.push(line);
    else {
      ordered.push(...added, line);
      added = [];
    }
  }
  return [...ordered, ...added];
}
