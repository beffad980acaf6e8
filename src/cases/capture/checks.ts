import type { HistoryEvent, NewEvent } from '../../core/events.ts';
import type { RecordedEntry } from '../../effects/recording/recording.ts';
import type { PinnedBase } from '../../engine/step/base.ts';
import type { MoveEnd, Prepared } from '../../git/landing/landing.ts';
import type { MoveOrder, PrepareOrder } from '../../git/orders.ts';
import type { CutLeg } from '../../testing/capture/cut-leg.ts';
import { refused, runAgain } from '../../testing/capture/refusal.ts';

/**
 * A case has its processes one after another and knows nothing of any other, so nobody else may have changed what they
 * share: the branches that the run landed on, and its history. Throws CAPTURE_REFUSED.
 */
export function refuseOthers(
  legs: readonly CutLeg[],
  { base, history }: { readonly base: PinnedBase | undefined; readonly history: readonly HistoryEvent[] },
): void {
  if (base) refuseMovedBranch(legs, base);
  refuseUnknownEvents(legs, history);
}

function refuseMovedBranch(legs: readonly CutLeg[], base: PinnedBase): void {
  let tip = base.commit;
  for (const { kind, onto, commit } of legs.flatMap(landingsOf)) {
    if (onto !== base.ref) {
      throw refused(
        `the run landed on ${onto}, while ${base.ref} was checked out`,
        `check out ${onto} first; then ${runAgain}`,
      );
    }
    if (kind === 'found' && commit !== tip)
      throw halfLanded(legs, commit) ?? movedByOthers(onto, tip, commit);
    if (kind === 'moved') tip = commit;
  }
}

/** The branch moves before anybody is told, and whether it did cannot be done again by a replay. */
function halfLanded(legs: readonly CutLeg[], found: string): Error | undefined {
  const wasItsOwn = legs
    .filter(({ killedAfter }) => killedAfter !== undefined)
    .flatMap(landingsOf)
    .some(({ kind, commit }) => kind === 'prepared' && commit === found);
  return wasItsOwn
    ? refused(
        'the process died in the middle of a landing, and what it had done of it by then is in no journal',
        runAgain,
      )
    : undefined;
}

const movedByOthers = (onto: string, tip: string, found: string): Error =>
  refused(
    `${onto} was moved by somebody else while the run was under way: it was at ${short(tip)}, and the landing found ${short(found)}`,
    `a case knows of no other process; run the workflow again while nothing else changes ${onto}, and capture that run`,
  );

/** What landings saw and did of the branch that they land on, in order. */
export interface LandingTrace {
  /** `found`: the branch was there; `prepared`: it would go there; `moved`: it went there. */
  readonly kind: 'found' | 'prepared' | 'moved';
  readonly onto: string;
  readonly commit: string;
}

export const landingsOf = ({ entries }: CutLeg): readonly LandingTrace[] => entries.flatMap(landingTraces);

/** What one entry says of it. */
export function landingTraces({
  op,
  args,
  outcome,
}: Pick<RecordedEntry, 'op' | 'args' | 'outcome'>): readonly LandingTrace[] {
  if (outcome?.kind !== 'ok') return [];
  if (op === 'land.prepare') return preparedTraces((args as PrepareOrder).onto, outcome.value as Prepared);
  if (op !== 'land.move' || (outcome.value as MoveEnd).kind !== 'moved') return [];
  const { onto, ready } = args as MoveOrder;
  return [{ kind: 'moved', onto, commit: ready.commit }];
}

function preparedTraces(onto: string, prepared: Prepared): readonly LandingTrace[] {
  switch (prepared.kind) {
    case 'ready':
      return [
        { kind: 'found', onto, commit: prepared.from },
        { kind: 'prepared', onto, commit: prepared.commit },
      ];
    case 'conflict':
      return [{ kind: 'found', onto, commit: prepared.onto }];
    case 'nothing':
      return [{ kind: 'found', onto, commit: prepared.commit }];
    case 'in-the-way':
      return [];
  }
}

const short = (commit: string): string => commit.slice(0, 10);

interface Appended {
  readonly runId: string;
  readonly events: readonly NewEvent[];
}

function refuseUnknownEvents(legs: readonly CutLeg[], history: readonly HistoryEvent[]): void {
  const [first] = history;
  if (!first) return;
  const known = legs
    .flatMap(({ entries }) => entries)
    .filter(({ op, outcome }) => /^store\.(create|append)$/.test(op) && outcome?.kind === 'ok')
    .map(({ args }) => args as Appended)
    .filter(({ runId }) => runId === first.runId)
    .reduce((sum, { events }) => sum + events.length, 0);
  const unknown = history.length - known;
  if (unknown <= 0) return;
  throw refused(
    `${unknown} of the ${history.length} events of run ${first.runId} are in no journal of it`,
    `another process wrote them, such as \`reprise cancel\` or a program of your own, or its process died in that moment; ${runAgain}`,
  );
}
