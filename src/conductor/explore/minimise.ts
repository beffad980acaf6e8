import { followLeniently } from './follow.ts';
import { type Perform, type Performed, switchesIn } from './move.ts';

export interface MinimiseOptions {
  /** As when the failure was found. */
  readonly isCalm?: boolean;
  /** How many schedules may be tried; 400 unless it is said. */
  readonly most?: number;
  /** What counts as one lane when switches are counted; each lane by itself unless it is said. */
  readonly ofLane?: (lane: string) => string;
}

export interface Minimised {
  readonly performed: Performed;
  /** How many schedules were tried. */
  readonly tries: number;
}

interface Turn {
  readonly of: string;
  readonly lanes: readonly string[];
}

/** A schedule with few switches between lanes that fails in the same way. */
export async function minimise(
  perform: Perform,
  failure: Performed,
  { isCalm = false, most = 400, ofLane = lane => lane }: MinimiseOptions = {},
): Promise<Minimised> {
  const what = failure.verdict.kind === 'failed' ? failure.verdict.what : undefined;
  const cost = ({ trace }: Performed) => switchesIn(trace, ofLane) * 1e6 + trace.length;
  let best = failure;
  let tries = 0;
  const isBetter = async (turns: readonly Turn[]): Promise<boolean> => {
    tries++;
    const order = turns.flatMap(({ lanes }) => lanes.map(lane => ({ lane })));
    const performed = await perform(followLeniently(order, { isCalm }));
    const { verdict } = performed;
    if (verdict.kind !== 'failed' || verdict.what !== what || cost(performed) >= cost(best)) return false;
    best = performed;
    return true;
  };
  for (let isDone = false; !isDone; ) {
    isDone = true;
    const turns = turnsOf(best, ofLane);
    for (const candidate of simpler(turns)) {
      if (tries >= most) break;
      if (!(await isBetter(candidate))) continue;
      isDone = false;
      break;
    }
  }
  return { performed: best, tries };
}

function turnsOf({ trace }: Performed, ofLane: (lane: string) => string): readonly Turn[] {
  const turns: { of: string; lanes: string[] }[] = [];
  for (const { lane } of trace) {
    const of = ofLane(lane);
    const last = turns.at(-1);
    if (last?.of === of) last.lanes.push(lane);
    else turns.push({ of, lanes: [lane] });
  }
  return turns;
}

/** What may fail as well: less of it and then no interruptions, a turn left out, or two turns of a lane made one. */
function* simpler(turns: readonly Turn[]): Generator<readonly Turn[]> {
  for (let length = 0; length < turns.length - 1; length = length === 0 ? 1 : 2 * length)
    yield turns.slice(0, length);
  for (let at = turns.length - 2; at >= 0; at--) {
    const next = turns.findIndex(({ of }, index) => index > at + 1 && of === turns[at]?.of);
    if (next >= 0) {
      yield joined(turns, at, next);
      yield joinedLater(turns, at, next);
    }
    yield turns.toSpliced(at, 1);
    yield turns.slice(0, at + 1);
  }
}

const joined = (turns: readonly Turn[], at: number, next: number): readonly Turn[] => [
  ...turns.slice(0, at + 1),
  ...turns.slice(next, next + 1),
  ...turns.slice(at + 1, next),
  ...turns.slice(next + 1),
];

const joinedLater = (turns: readonly Turn[], at: number, next: number): readonly Turn[] => [
  ...turns.slice(0, at),
  ...turns.slice(at + 1, next),
  ...turns.slice(at, at + 1),
  ...turns.slice(next),
];
