export { definitionPath, outerUnits, unitOf, unitOfEvent } from './graph.ts';
export type { StepWorkEvent } from './work-state.ts';
