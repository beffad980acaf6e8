import type { Asked } from '../effects/conductor/scheduler.ts';
import { asData, differences, isSameData } from '../effects/divergence/compare.ts';
import type { Keys } from '../effects/effect.ts';
import type { RecordedEntry } from '../effects/recording/recording.ts';
import { tapedArgs, tapedOutcome } from '../effects/tracer.ts';
import type { Outcome } from '../world/outcome.ts';

type Normalise = (value: unknown) => unknown;

export interface RequestDifference {
  readonly what: 'arguments' | 'keys';
  readonly lines: readonly string[];
}

/**
 * What differs between what is asked for and what was recorded, a line for each field. What is the same as it stands
 * is not normalised: normalising it would give the same again.
 */
export function requestDifference(
  asked: Asked,
  recorded: RecordedEntry,
  normalise: Normalise,
): RequestDifference | undefined {
  const args = tapedArgs(asked);
  if (!isSameData(recorded.args, args)) {
    const lines = differences(recorded.args, normalise(asData(args)), 'args');
    if (lines.length > 0) return { what: 'arguments', lines };
  }
  if (isSameKeys(recorded.keys ?? {}, asked.keys)) return undefined;
  const now = normalise(asData(asked.keys)) as Keys;
  const lines = [
    ...differences(recorded.keys?.reads ?? [], now.reads ?? [], 'keys.reads'),
    ...differences(recorded.keys?.writes ?? [], now.writes ?? [], 'keys.writes'),
  ];
  return lines.length > 0 ? { what: 'keys', lines } : undefined;
}

const isSameKeys = (recorded: Keys, now: Keys): boolean =>
  isSameData(recorded.reads ?? none, now.reads ?? none) &&
  isSameData(recorded.writes ?? none, now.writes ?? none);

const none: readonly string[] = [];

/** The same for how an effect ended. */
export function outcomeDifferences(
  asked: Asked,
  recorded: Outcome,
  outcome: Outcome,
  normalise: Normalise,
): readonly string[] {
  const now = tapedOutcome(asked.effect, outcome);
  if (recorded.kind !== now.kind) return [`end: recorded ${inWords(recorded)}, now ${inWords(now)}`];
  const path = recorded.kind === 'ok' ? 'result' : 'error';
  const before = comparable(recorded);
  const after = comparable(now);
  return isSameData(before, after) ? [] : differences(before, normalise(asData(after)), path);
}

/** A stack says where, which may change; what went wrong may not. */
function comparable(outcome: Outcome): unknown {
  switch (outcome.kind) {
    case 'ok':
      return outcome.value;
    case 'failed': {
      const { code, message, hint, exitCode } = outcome.error;
      return { code, message, hint, exitCode };
    }
    case 'cancelled':
      return null;
  }
}

const inWords = (outcome: Outcome): string =>
  outcome.kind === 'failed' ? `failed with ${outcome.error.code}: ${outcome.error.message}` : outcome.kind;
