import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RepriseError } from '../../core/errors.ts';
import type { Asked, Obstacle, Standing, View } from '../conductor/scheduler.ts';
import { nearest, type RecordedEntry, type Tapes, topLane, type Witness } from '../recording/recording.ts';

interface ExplainOptions {
  readonly tapes: Tapes;
  readonly view: View;
  /** `file:line` of an entry on its tape. */
  readonly where?: ((entry: RecordedEntry) => string | undefined) | undefined;
  /** What to type to record it again. */
  readonly rerecord?: string | undefined;
  /** Source files are named below this folder. */
  readonly sourceRoot?: string | undefined;
}

/** How many steps before the divergence are shown. */
const stepsBefore = 8;

/** Every way in which a replay can differ from its recording, as an error that says where and by what. */
export type Explain = ReturnType<typeof createExplain>;

export function createExplain({ tapes, view, where, rerecord, sourceRoot }: ExplainOptions) {
  const { score } = tapes;
  const at = (entry: RecordedEntry): string => {
    const place = where?.(entry);
    return `${entry.lane} ${entry.op}${place === undefined ? '' : `  ${place}`}`;
  };
  const fact = (label: string, ...lines: readonly string[]): Fact => ({ label, lines });

  const placeOf = (lane: string, i: number): Fact =>
    fact(
      'at',
      `step ${topLane(lane)}, lane ${lane}, i ${i} of ${tapes.of(lane).length}, n ${view.granted} of ${score.length}`,
    );
  const says = (entry: RecordedEntry | undefined): Fact =>
    fact('the score says', entry ? at(entry) : 'nothing more');
  const tapeSays = ({ lane, i }: { readonly lane: string; readonly i: number }): readonly Fact[] => {
    const recorded = tapes.of(lane)[i];
    return recorded === score[view.granted]
      ? []
      : [fact('its tape says', recorded ? at(recorded) : 'nothing more')];
  };
  const sourceText = ({ origin }: Asked): string => {
    const source = sourceOf(origin, sourceRoot);
    return source === undefined ? '' : `  ${source}`;
  };
  const asks = (asked: Asked): Fact =>
    fact('the lane asks', `${asked.lane.name} ${asked.op}${sourceText(asked)}`);
  const describe = (standing: Standing): string => {
    if (standing.kind === 'granted') return `${standing.lane} performs ${standing.op}`;
    if (standing.kind !== 'parked') return `${standing.lane} ${standing.kind}`;
    const { lane, asked, obstacle } = standing;
    const onTape = asked.i < tapes.of(lane).length;
    return `${lane} waits at ${asked.op}${whyOf(obstacle, onTape)}`;
  };
  const others = (but?: string): readonly Fact[] => {
    const lines = view
      .standings()
      .filter(({ lane }) => lane !== but)
      .map(describe);
    return lines.length > 0 ? [fact('others', ...lines)] : [];
  };
  const before = (n = view.granted): readonly Fact[] => {
    const from = Math.max(0, n - stepsBefore);
    const lines = score.slice(from, n).map(({ n, lane, op }) => `${n} ${lane} ${op}`);
    return lines.length > 0 ? [fact('before that', ...lines)] : [];
  };
  const nearby = ({ lane, op, i }: Asked): readonly Fact[] => {
    const found = nearest(tapes.of(lane.name), op, i);
    if (!found || found.distance === 0) return [];
    const { entry, distance } = found;
    const side = distance > 0 ? 'later' : 'earlier';
    return [fact('nearest', `${at(entry)}, i ${entry.i}, ${Math.abs(distance)} ${side}`)];
  };
  const aboutAsked = (asked: Asked, difference: readonly string[] = []): readonly Fact[] => [
    placeOf(asked.lane.name, asked.i),
    says(score[view.granted]),
    ...tapeSays({ lane: asked.lane.name, i: asked.i }),
    asks(asked),
    ...(difference.length > 0 ? [fact('difference', ...difference)] : []),
    ...others(asked.lane.name),
    ...before(),
    ...nearby(asked),
  ];
  const error = (what: string, facts: readonly Fact[]): RepriseError => diverged({ what, facts, rerecord });

  return {
    missing: (lane: string, entries: number, how: 'ended' | 'was left behind') => {
      const left = tapes.of(lane).slice(entries);
      const [next] = left;
      return error(`lane ${lane} ${how}, but its tape goes on with ${entriesText(left.length)}`, [
        placeOf(lane, entries),
        says(score[view.granted]),
        ...(next && next !== score[view.granted] ? [fact('its tape says', at(next))] : []),
        ...others(),
        ...before(),
      ]);
    },
    extra: (asked: Asked) =>
      error(`lane ${asked.lane.name} asks for ${asked.op}, but its tape has ended`, aboutAsked(asked)),
    otherOrder: (asked: Asked, recorded: RecordedEntry) =>
      error(
        `lane ${asked.lane.name} asks for ${asked.op} where ${recorded.op} was recorded`,
        aboutAsked(asked),
      ),
    otherRequest: (asked: Asked, what: 'arguments' | 'keys', difference: readonly string[]) =>
      error(
        `lane ${asked.lane.name} asks for ${asked.op} with other ${what} than were recorded`,
        aboutAsked(asked, difference),
      ),
    otherAnswer: (asked: Asked, recorded: RecordedEntry, difference: readonly string[]) =>
      error(`${recorded.op} of lane ${asked.lane.name} ended otherwise than it was recorded`, [
        fact(
          'at',
          `step ${topLane(recorded.lane)}, lane ${recorded.lane}, i ${recorded.i} of ${tapes.of(recorded.lane).length}, n ${recorded.n} of ${score.length}`,
        ),
        says(recorded),
        fact('asked from', sourceOf(asked.origin, sourceRoot) ?? 'unknown'),
        fact('difference', ...difference),
        ...others(asked.lane.name),
        ...before(recorded.n),
      ]),
    neverStarted: (recorded: RecordedEntry) =>
      error(`lane ${recorded.lane} never started, though it is its turn`, [
        placeOf(recorded.lane, 0),
        says(recorded),
        ...others(),
        ...before(),
      ]),
    elsewhere: (recorded: RecordedEntry) =>
      error(`lane ${recorded.lane} asks for nothing, where ${recorded.op} was recorded`, [
        placeOf(recorded.lane, recorded.i),
        says(recorded),
        ...others(),
        ...before(),
      ]),
    stuck: (asked: Asked, obstacle: Obstacle) =>
      error(
        `lane ${asked.lane.name} is at its place, but cannot go on${whyOf(obstacle, true)}`,
        aboutAsked(asked),
      ),
    deadlock: () => {
      const waits = view.standings().flatMap(standing => (standing.kind === 'parked' ? [standing] : []));
      const what = waits.map(({ lane, asked }) => `${lane} waits at ${asked.op}`).join('; ');
      return deadlocked({
        what,
        facts: [
          fact('at', `n ${view.granted} of ${score.length}`),
          says(score[view.granted]),
          fact('waiting', ...waits.map(wait => `${describe(wait)}${sourceText(wait.asked)}`)),
          ...before(),
        ],
      });
    },
    leftOver: () => {
      const left = score.slice(view.granted);
      const lanes = [...new Set(left.map(({ lane }) => lane))];
      return error(
        `all lanes have ended, but ${entriesText(left.length)} of the score ${left.length === 1 ? 'is' : 'are'} left over`,
        [
          says(left[0]),
          fact(
            'left over',
            ...lanes.map(lane => `${lane}: ${left.filter(entry => entry.lane === lane).length}`),
          ),
          ...before(),
        ],
      );
    },
    lessAtOnce: (recorded: Witness, now: Witness) =>
      error('less went on at the same time than was recorded', [
        fact('steps open at once', `recorded ${recorded.mostOpen}, now ${now.mostOpen}`),
        fact('long effects at once', `recorded ${recorded.mostInFlight}, now ${now.mostInFlight}`),
        fact('switches between steps', `recorded ${recorded.switches}, now ${now.switches}`),
      ]),
  };
}

const entriesText = (count: number): string => `${count} ${count === 1 ? 'entry' : 'entries'}`;

function whyOf(obstacle: Obstacle | undefined, onTape: boolean): string {
  switch (obstacle?.kind) {
    case 'condition':
      return ': its condition is false';
    case 'keys':
      return `: the key ${obstacle.key} is held by ${obstacle.holders.join(', ') || 'nobody'}`;
    case 'no answer':
      return ': its end is not on the tape';
    case undefined:
      return onTape ? '' : ': no more on its tape';
  }
}

/** One thing to know about a divergence: a label, and a line or more. */
interface Fact {
  readonly label: string;
  readonly lines: readonly string[];
}

interface Divergence {
  /** What is not as it was recorded, in one line. */
  readonly what: string;
  readonly facts?: readonly Fact[];
  /** What to type if the change is intended. */
  readonly rerecord?: string | undefined;
}

/** A replay that did something else than what was recorded, or a recording that cannot be replayed. */
const diverged = ({ what, facts = [], rerecord }: Divergence): RepriseError =>
  new RepriseError('REPLAY_DIVERGED', [`replay diverged: ${what}`, ...factLines(facts)].join('\n'), {
    hint: rerecord && `if this is intended, record it again: ${rerecord}`,
  });

/** Lanes that wait for each other: a finding about the program, and not about the recording. */
const deadlocked = ({ what, facts = [] }: Divergence): RepriseError =>
  new RepriseError('DEADLOCK', [`no lane can go on: ${what}`, ...factLines(facts)].join('\n'));

/** Labels in one column, lines in another. */
function factLines(facts: readonly Fact[]): readonly string[] {
  const width = Math.max(...facts.map(({ label }) => label.length), 0);
  return facts.flatMap(({ label, lines }) =>
    lines.map((line, index) => `  ${(index === 0 ? label : '').padEnd(width)}  ${line}`),
  );
}

type Above = (...args: never[]) => unknown;

/** Frames of one request: the first is who asked, the others are for callers that only pass on. */
const frames = 4;

/** Where in the source something was asked for. Cheap to take; only a message that needs it makes text of it. */
export class Origin {
  declare readonly stack: string;

  /** `above` is the function whose caller is wanted. */
  constructor(above: Above) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = frames;
    Error.captureStackTrace(this, above);
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Of what nobody will ask about: taking one is a tenth of the work of an effect in memory. */
export const unknownOrigin: Origin = { stack: '' };

/** `src/land.ts:88`, below `root` if that is given; undefined if no code of ours asked. */
export function sourceOf({ stack }: { readonly stack: string }, root?: string): string | undefined {
  for (const line of stack.split('\n')) {
    const found = /^\s+at (?:.* \()?(?:async )?(.+?):(\d+):\d+\)?$/.exec(line);
    const [, place = '', row] = found ?? [];
    if (!found || place.startsWith('node:') || isBoundary(place)) continue;
    return `${shown(place, root)}:${row}`;
  }
  return undefined;
}

/** Code of the boundary itself; in a bundle it has no folder of its own, but is left out by `above`. */
const isBoundary = (place: string): boolean =>
  /\/(src|dist)\/effects\/((conductor|divergence|recording|redact|schedulers)\/)?[^/]+$/.test(place) &&
  !/\.test\.[jt]s$/.test(place);

function shown(place: string, root: string | undefined): string {
  const file = place.startsWith('file:') ? fileURLToPath(place) : place;
  if (root === undefined) return file;
  const below = relative(root, file);
  return below.startsWith('..') ? file : below;
}
