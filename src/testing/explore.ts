import { followStrictly, minimise } from '../effects/explore/minimise.ts';
import type { PolicyName } from '../effects/explore/policies.ts';
import {
  formatSchedule,
  type Perform,
  type Performed,
  parseSchedule,
  switchesIn,
} from '../effects/explore/schedule.ts';
import { type Found, notDeterministic, search, twice } from '../effects/explore/search.ts';
import { laneDiagram } from '../terminal/lane-diagram.ts';
import { performingSetup, type Setup } from './explored-world.ts';

export interface ExploreOptions {
  /**
   * How schedules are chosen; `auto` unless it is said. `dpor` sees every order once if there are not too many, the
   * others draw by chance, and `auto` does all of it.
   */
  readonly policy?: PolicyName;
  /** How many schedules at the most; 1,000 unless it is said. */
  readonly schedules?: number;
  /** For how many milliseconds at the most. */
  readonly forMs?: number;
  /** For what is drawn by chance; 1 unless it is said. */
  readonly seed?: number;
  /** Every schedule is performed twice, and has to come to the same: what does not depends on something that is no effect. */
  readonly twice?: boolean;
  /** Performs only this one: the `schedule` of a failure. */
  readonly schedule?: string;
}

export interface ExploredFailure {
  /**
   * `invariant`, `deadlock`, `livelock`, `undeclared write`, `not deterministic`, or the code of an error that a lane threw.
   */
  readonly what: string;
  readonly message: string;
  /** Which lane goes on when, with few switches between them: give it to `explore` to see the failure again. */
  readonly schedule: string;
  readonly switches: number;
  /** Which policy found it, and its seed if it has one. */
  readonly foundBy: string;
  /** What lanes did, a column for each, time downwards; at most 80 columns wide. */
  readonly diagram: string;
}

export interface ExploreResult {
  /** Every order was seen, while time stands still unless all lanes wait. If not, schedules were sampled. */
  readonly complete: boolean;
  readonly schedules: number;
  /** How many of them really differ: not only in the order of effects that do not conflict. */
  readonly classes: number;
  /** Pairs of effects that met, and how many of them were seen in both orders. */
  readonly pairs: { readonly seen: number; readonly inBothOrders: number };
  readonly failure?: ExploredFailure;
  /** All of it for a person, at most 80 columns wide. */
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
  const isByChance = wasByChance(failure.performed);
  const { performed } = isByChance ? failure : await minimise(perform, failure.performed, { isCalm });
  return withText({
    ...facts,
    failure: describe(performed, foundBy(failure), scheduleOf(performed, isCalm)),
  });
}

/** Nothing that depends on chance can be made simpler by trying. */
const wasByChance = ({ verdict }: Performed): boolean =>
  verdict.kind === 'failed' && verdict.what === notDeterministic;

/** Whether time may pass at any moment is part of a schedule. */
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
  const message = `the schedule has ${moves.length} moves, and the program ended after ${trace.length}`;
  const misfit: Performed = { ...performed, verdict: { kind: 'failed', what: 'REPLAY_DIVERGED', message } };
  return withText({ ...facts, failure: describe(misfit, 'schedule', schedule) });
}

const foundBy = ({ policy, seed }: Found): string =>
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
  const seen = complete ? 'every order was seen' : 'orders were sampled';
  const counts = `${schedules} schedules, ${classes} of them different`;
  const met = `${pairs.inBothOrders} of ${pairs.seen} pairs of effects in both orders`;
  if (!failure) return `no failure: ${seen}\n${counts}; ${met}`;
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
