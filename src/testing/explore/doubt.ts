/** Of how many schedules nothing can be said. */
export interface Doubt {
  readonly inconclusive: number;
  readonly schedules: number;
}

/** Above this share of doubt, nothing was shown of a case. */
export const mostDoubt = 0.2;

export const isTooMuch = (doubt: Doubt): boolean => shareOf(doubt) > mostDoubt;

/** More of them say nothing than something. */
export const isMost = (doubt: Doubt): boolean => shareOf(doubt) > 0.5;

export const shareOf = ({ inconclusive, schedules }: Doubt): number =>
  schedules === 0 ? 0 : inconclusive / schedules;

/** In all worlds together. */
export const sumOf = (all: readonly Doubt[]): Doubt => ({
  inconclusive: all.reduce((sum, { inconclusive }) => sum + inconclusive, 0),
  schedules: all.reduce((sum, { schedules }) => sum + schedules, 0),
});
