import type { HistoryEvent } from '../core/events.ts';

/** What runs as one: a step (`fix`), a worker of a fanned-out one (`fix:1`), or a step inside a worker (`fix:1/build`). */
export const unitOf = (step: string, worker: number | undefined): string =>
  worker === undefined ? step : `${step}:${worker}`;

/** The unit that an event is about; undefined for those of the run. */
export const unitOfEvent = ({ step, worker }: Pick<HistoryEvent, 'step' | 'worker'>): string | undefined =>
  step === undefined ? undefined : unitOf(step, worker);

/** The path of the step that a unit is a copy of. */
export const definitionPath = (unit: string): string =>
  unit.includes(':') ? unit.replace(/:\d+/g, '') : unit;

/** What a unit is inside of, from the inside out: `a:1`, `a` for `a:1/b`. */
export function outerUnits(unit: string): readonly string[] {
  const outer: string[] = [];
  for (let at = unit.length - 1; at > 0; at--) {
    const sign = unit[at];
    if (sign === '/' || sign === ':') outer.push(unit.slice(0, at));
  }
  return outer;
}

/** The unit of another step of the same workflow. */
export function siblingUnit(unit: string, id: string): string {
  const slash = unit.lastIndexOf('/');
  return slash === -1 ? id : `${unit.slice(0, slash + 1)}${id}`;
}
