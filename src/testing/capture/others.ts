import type { HistoryEvent, NewEvent } from '../../core/event.ts';
import type { PinnedBase } from '../../engine/base.ts';
import type { Landing } from '../../git/landing.ts';
import type { CutLeg } from './cut-leg.ts';
import { refused, runAgain } from './refusal.ts';

/**
 * A case has its processes one after another and knows nothing of any other, so nobody else may have changed what they
 * share: the branches that the run landed on, and its history. Throws CAPTURE_REFUSED.
 */
export function refuseOthers(
  legs: readonly CutLeg[],
  { base, history }: { readonly base: PinnedBase | undefined; readonly history: readonly HistoryEvent[] },
): void {
  refuseHalfLanded(legs);
  if (base) refuseMovedBranch(legs, base);
  refuseUnknownEvents(legs, history);
}

/** A landing moves a branch before anybody is told, and whether it did cannot be done again by a replay. */
function refuseHalfLanded(legs: readonly CutLeg[]): void {
  for (const { killedAfter, wasUnderWay = [] } of legs) {
    if (!killedAfter || !wasUnderWay.includes('git.land')) continue;
    throw refused(
      'the process died in the middle of a landing, and what it had done of it by then is in no journal',
      runAgain,
    );
  }
}

function refuseMovedBranch(legs: readonly CutLeg[], base: PinnedBase): void {
  let tip = base.commit;
  for (const landing of legs.flatMap(landingsOf)) {
    const found = whereItWas(landing);
    if (landing.branch !== base.ref) {
      throw refused(
        `the run landed on ${landing.branch}, while ${base.ref} was checked out`,
        `check out ${landing.branch} first; then ${runAgain}`,
      );
    }
    if (found !== undefined && found !== tip) {
      throw refused(
        `${landing.branch} was moved by somebody else while the run was under way: it was at ${short(tip)}, and the landing found ${short(found)}`,
        `a case knows of no other process; run the workflow again while nothing else changes ${landing.branch}, and capture that run`,
      );
    }
    if (landing.kind === 'landed') tip = landing.commit;
  }
}

const landingsOf = ({ entries }: CutLeg): readonly Landing[] =>
  entries.flatMap(({ op, outcome }) =>
    op === 'git.land.end' && outcome?.kind === 'ok' ? [outcome.value as Landing] : [],
  );

function whereItWas(landing: Landing): string | undefined {
  switch (landing.kind) {
    case 'landed':
      return landing.from;
    case 'conflict':
      return landing.onto;
    case 'nothing-to-land':
      return landing.commit;
    default:
      return undefined;
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
