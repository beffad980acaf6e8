import {
  type FoundFailure,
  followStrictly,
  formatSchedule,
  minimise,
  notDeterministic,
  type Perform,
  type Performed,
  type PolicyName,
  parseSchedule,
  search,
  switchesIn,
  twice,
} from '../effects/explore/index.ts';
import { laneDiagram } from '../terminal/index.ts';
import { performingSetup, type Setup } from './explored-world.ts';

export interface ExploreOptions {
  /**
   * Policy that chooses schedules. `dpor` plays every order of conflicting effects if there are not too many, the others
   * choose at random, and `auto` combines all of them. Defaults to `auto`.
   */
  readonly policy?: PolicyName;
  /** Maximum number of schedules. Defaults to 1,000. */
  readonly schedules?: number;
  /** Time limit in milliseconds. */
  readonly forMs?: number;
  /** Random seed. Defaults to 1. */
  readonly seed?: number;
  /**
   * Whether to perform every schedule twice. A difference between the two is a failure: the code then depends on something
   * that is not an effect.
   */
  readonly twice?: boolean;
  /** Single schedule to perform: the `schedule` of an earlier failure. */
  readonly schedule?: string;
}

export interface ExploredFailure {
  /**
   * Kind of failure: `invariant`, `deadlock`, `livelock`, `undeclared write`, `not deterministic`, or the code of an error
   * that a lane threw.
   */
  readonly what: string;
  readonly message: string;
  /** Minimized order of the lanes. Pass it to `explore` to reproduce the failure. */
  readonly schedule: string;
  /** Number of switches between lanes. */
  readonly switches: number;
  /** Policy that found it, with its seed if it has one. */
  readonly foundBy: string;
  /** Diagram of the schedule: one column per lane, time going down, at most 80 columns wide. */
  readonly diagram: string;
}

export interface ExploreResult {
  /**
   * Whether every order of conflicting effects was played, with time passing only while all lanes wait. Otherwise schedules
   * were sampled.
   */
  readonly complete: boolean;
  readonly schedules: number;
  /** Number of schedules that differ in the order of conflicting effects. */
  readonly classes: number;
  /** Number of conflicting pairs of effects, and how many of them were seen in both orders. */
  readonly pairs: { readonly seen: number; readonly inBothOrders: number };
  readonly failure?: ExploredFailure;
  /** Returns a summary for people, at most 80 columns wide. */
  toString(): string;
}

const calmMark = 'calm';

export async function exploreSetup(setup: Setup, options: ExploreOptions = {}): Promise<ExploreResult> {
  const { schedule, twice: isTwice = false, ...searched } = options;
  const once = performingSetup(setup);
  const perform = isTwice ? twice(once) : once;
  if (schedule !== undefined) return again(perform, schedule);
  const { failure, isComplete, schedules, coverage } = await search(perform, searched);
  const facts = { complete: isComplete, schedules, classes: coverage.classes, pairs: coverage.pairs };
  if (!failure) return withText(facts);
  const { isCalm } = failure;
  const isRandom = wasRandom(failure.performed);
  const { performed } = isRandom ? failure : await minimise(perform, failure.performed, { isCalm });
  return withText({
    ...facts,
    failure: describe(performed, foundBy(failure), scheduleOf(performed, isCalm)),
  });
}

/** A failure that is not deterministic cannot be minimized. */
const wasRandom = ({ verdict }: Performed): boolean =>
  verdict.kind === 'failed' && verdict.what === notDeterministic;

/** The text of a schedule. `calm: ` means that time passes only while all lanes wait. */
const scheduleOf = ({ trace }: Performed, isCalm: boolean): string =>
  `${isCalm ? `${calmMark}: ` : ''}${formatSchedule(trace)}`;

async function again(perform: Perform, schedule: string): Promise<ExploreResult> {
  const [, mark, order = ''] = /^(calm: )?(.*)$/s.exec(schedule) ?? [];
  const moves = parseSchedule(order);
  const performed = await perform(followStrictly(moves, { isCalm: mark !== undefined }));
  const { verdict, trace } = performed;
  const facts = { complete: false, schedules: 1, classes: 1, pairs: { seen: 0, inBothOrders: 0 } };
  if (verdict.kind === 'failed')
    return withText({ ...facts, failure: describe(performed, 'schedule', schedule) });
  if (trace.length === moves.length) return withText(facts);
  const message = `the schedule has ${moves.length} moves, but the program ended after ${trace.length}`;
  const diverged: Performed = { ...performed, verdict: { kind: 'failed', what: 'REPLAY_DIVERGED', message } };
  return withText({ ...facts, failure: describe(diverged, 'schedule', schedule) });
}

const foundBy = ({ policy, seed }: FoundFailure): string =>
  seed === undefined ? policy : `${policy}, seed ${seed}`;

function describe({ verdict, trace }: Performed, by: string, schedule: string): ExploredFailure {
  const { what, message } = verdict.kind === 'failed' ? verdict : { what: verdict.kind, message: '' };
  const rows = trace.map(({ lane, op }) => ({ lane, text: op }));
  return {
    what,
    message,
    schedule,
    switches: switchesIn(trace),
    foundBy: by,
    diagram: laneDiagram(rows).join('\n'),
  };
}

function withText(facts: Omit<ExploreResult, 'toString'>): ExploreResult {
  return { ...facts, toString: () => text(facts) };
}

function text({ complete, schedules, classes, pairs, failure }: Omit<ExploreResult, 'toString'>): string {
  const extent = complete ? 'every order was played' : 'schedules were sampled';
  const counts = `${schedules} schedules, ${classes} of them different`;
  const pairCounts = `${pairs.inBothOrders} of ${pairs.seen} conflicting pairs in both orders`;
  if (!failure) return `no failure: ${extent}\n${counts}; ${pairCounts}`;
  const { what, message, diagram, foundBy: by, schedule } = failure;
  return [
    `${what}: ${message}`,
    '',
    diagram,
    '',
    `found by ${by} after ${counts}`,
    `schedule: ${schedule}`,
  ].join('\n');
}
