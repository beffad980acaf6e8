import type { CaseSignal } from '../../cases/manifest/manifest.ts';
import { exitCodeOfSignal, signalOfReason } from '../../cases/perform/step-io.ts';
import type { RecordedEntry } from '../../effects/recording/recording.ts';
import { type CutLeg, effectOf } from './cut-leg.ts';

/** That a process was told to stop, and what it was doing then. */
export interface Interruption {
  readonly step: string;
  readonly signal: CaseSignal;
  /** The effect that it had reached; `nth` counts from 1. */
  readonly label: string;
  readonly nth: number;
}

export function interruptionOf({ step, entries, killedAfter }: CutLeg): Interruption | undefined {
  if (killedAfter) return undefined;
  const at = entries.findIndex(
    ({ op, outcome }) => op === 'keyboard.interrupt.end' && outcome?.kind === 'ok',
  );
  const outcome = entries[at]?.outcome;
  const signal = outcome?.kind === 'ok' ? signalOfReason(String(outcome.value)) : undefined;
  if (!signal) return undefined;
  const reached = entries.slice(0, at).filter(({ op }) => !op.endsWith('.end'));
  const last = reached.findLast(isWork) ?? reached.at(-1);
  if (!last) return undefined;
  const label = effectOf(last);
  const nth = reached.filter(entry => entry.n <= last.n && effectOf(entry) === label).length;
  return { step, signal, label, nth };
}

/** So that a new recording is interrupted in the same situation. */
const isWork = ({ op }: RecordedEntry): boolean =>
  /^(session\.next|shell\.run|function\.next)\.begin$/.test(op);

/** What the shell was told. */
export function exitOf(leg: CutLeg): number | undefined {
  const { exit } = leg;
  if (exit === undefined || exit === 0) return exit;
  const interruption = interruptionOf(leg);
  return interruption ? exitCodeOfSignal(interruption.signal) : exit;
}
