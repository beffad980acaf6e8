import { describe } from 'vitest';
import { describeClaimFences } from './claim-fences.conformance.ts';
import { describeClaimMoves } from './claim-moves.conformance.ts';
import { describeClaims } from './claims.conformance.ts';
import { describeHistories } from './history.conformance.ts';
import { describeInboxAndProcesses } from './inbox.conformance.ts';
import { describeInterleavings } from './interleaving.conformance.ts';
import { describeOwnership } from './ownership.conformance.ts';
import { describeProjects } from './projects.conformance.ts';
import type { OpenStore } from './samples.conformance.ts';
import { describeSummaries } from './summaries.conformance.ts';
import { describeWorkers } from './workers.conformance.ts';

/** Conformance suite of an event store. `open` returns a fresh one for every test. */
export function describeEventStore(name: string, open: OpenStore): void {
  describe(name, () => {
    describeHistories(open);
    describeOwnership(open);
    describeInboxAndProcesses(open);
    describeSummaries(open);
    describeInterleavings(open);
    describeClaims(open);
    describeClaimFences(open);
    describeClaimMoves(open);
    describeWorkers(open);
    describeProjects(open);
  });
}
