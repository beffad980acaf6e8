import type { Mutation } from './mutations.ts';
import type { CaseResult } from './play-cases.ts';

/** Result of a mutation. */
export interface Verdict {
  readonly mutation: Mutation;
  readonly caught: readonly CaseResult[];
  readonly problem: string | undefined;
}

export const titleOf = ({ group, name }: CaseResult): string => (group === '' ? name : `${group}/${name}`);

export const firstLine = ({ failures }: CaseResult): string => {
  const [failure] = failures;
  return failure ? `${failure.kind}: ${failure.message.split('\n')[0]}` : 'failed';
};

const width = { name: 34, title: 30, line: 110 };

/** Returns the lines for one mutation: whether it was caught, then each case that caught it with its first failure. */
export function verdictLines({ mutation, caught, problem }: Verdict): readonly string[] {
  const verdict = caught.length > 0 ? `caught by ${caught.length}` : 'NOT CAUGHT';
  return [
    `${mutation.name.padEnd(width.name)} ${verdict}${problem ? ` (${problem})` : ''}`,
    ...caught.map(result => `    ${titleOf(result).padEnd(width.title)} ${cut(firstLine(result))}`),
  ];
}

const cut = (text: string) => (text.length > width.line ? `${text.slice(0, width.line - 1)}…` : text);
