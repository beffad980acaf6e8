import { RepriseError } from '../core/errors.ts';

/** One thing to know about a divergence: a label, and a line or more. */
export interface Fact {
  readonly label: string;
  readonly lines: readonly string[];
}

export interface Divergence {
  /** What is not as it was recorded, in one line. */
  readonly what: string;
  readonly facts?: readonly Fact[];
  /** What to type if the change is intended. */
  readonly rerecord?: string | undefined;
}

/** A replay that did something else than what was recorded, or a recording that cannot be replayed. */
export const diverged = ({ what, facts = [], rerecord }: Divergence): RepriseError =>
  new RepriseError('REPLAY_DIVERGED', [`replay diverged: ${what}`, ...factLines(facts)].join('\n'), {
    hint: rerecord && `if this is intended, record it again: ${rerecord}`,
  });

/** Lanes that wait for each other: a finding about the program, and not about the recording. */
export const deadlocked = ({ what, facts = [] }: Divergence): RepriseError =>
  new RepriseError('DEADLOCK', [`no lane can go on: ${what}`, ...factLines(facts)].join('\n'));

/** Labels in one column, lines in another. */
function factLines(facts: readonly Fact[]): readonly string[] {
  const width = Math.max(...facts.map(({ label }) => label.length), 0);
  return facts.flatMap(({ label, lines }) =>
    lines.map((line, index) => `  ${(index === 0 ? label : '').padEnd(width)}  ${line}`),
  );
}
