/** One line of a comparison of two texts. */
export interface DiffLine {
  readonly kind: 'same' | 'removed' | 'added';
  readonly text: string;
}

/** With more differences than this nobody reads on, and finding the fewest gets slow. */
const mostEdits = 1000;

/** The fewest lines to take out of `before` and to put in to get `after`, by Myers' algorithm. */
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

/** How far each diagonal got, by the number of edits: `furthest.get(k)` is the place in `before` on diagonal `k`. */
type Furthest = ReadonlyMap<number, number>;

const at = (furthest: Furthest, diagonal: number): number => furthest.get(diagonal) ?? -1;

/** Whether the best way to a diagonal is by an added line, from the diagonal above. */
const comesFromAbove = (furthest: Furthest, diagonal: number, edits: number): boolean =>
  diagonal === -edits || (diagonal !== edits && at(furthest, diagonal - 1) < at(furthest, diagonal + 1));

/** What was known before each edit; `undefined` if there are too many. */
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

/** Within one place that differs, all that was there stands before all that is there now. */
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
