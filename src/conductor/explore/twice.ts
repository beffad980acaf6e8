import type { Move, Performed, Point, Policy } from '../../effects/explore/schedule.ts';

/** A schedule that did not come to the same when it was performed once more. */
export const notDeterministic = 'not deterministic';

/**
 * Performs every schedule twice, and compares who could go on before each move, and how it ended. What differs depends on
 * something that is no effect, and makes of the schedule a failure. `endOf` says more of how one ended, if more is known.
 */
export const twice =
  <Known extends Performed>(
    perform: (policy: Policy) => Promise<Known>,
    endOf: (performed: Known) => string = () => '',
  ): ((policy: Policy) => Promise<Known>) =>
  async policy => {
    const points: string[] = [];
    const first = await perform({
      ...policy,
      choose: point => {
        points.push(standing(point));
        return policy.choose(point);
      },
    });
    if (first.verdict.kind === 'cut') return first;
    const following = new Following(first.trace, points);
    const second = await perform({ ...policy, choose: point => following.choose(point) });
    const difference = following.difference ?? differentEnd(ended(first, endOf), ended(second, endOf));
    return difference === undefined
      ? first
      : { ...first, verdict: { kind: 'failed', what: notDeterministic, message: difference } };
  };

const standing = ({ enabled, waiting }: Point): string =>
  `${listed(enabled)}${waiting.length > 0 ? ` (${listed(waiting)} cannot)` : ''}`;

const listed = (moves: readonly Move[]): string => moves.map(({ lane, op }) => `${lane} ${op}`).join(', ');

class Following {
  readonly #trace: readonly Move[];
  readonly #points: readonly string[];
  difference: string | undefined;

  constructor(trace: readonly Move[], points: readonly string[]) {
    this.#trace = trace;
    this.#points = points;
  }

  choose(point: Point): string {
    const { n } = point;
    const before = this.#points[n];
    const now = standing(point);
    const lane = this.#trace[n]?.lane;
    if (before === now && lane !== undefined) return lane;
    this.difference = `before move ${n + 1} these could go on: ${before ?? 'nobody, it had ended'}; the second time: ${now}`;
    throw new Error(this.difference);
  }
}

function ended<Known extends Performed>(performed: Known, endOf: (performed: Known) => string): string {
  const { verdict, trace } = performed;
  const words = verdict.kind === 'failed' ? verdict.what : verdict.kind;
  return `${words} after ${trace.length} moves${endOf(performed)}`;
}

const differentEnd = (first: string, second: string): string | undefined =>
  first === second ? undefined : `it ended in two ways: ${first}; the second time: ${second}`;
