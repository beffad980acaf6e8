export { countedIds, virtualClock } from './clock.ts';
export { CasePerformance, type PlayedStep } from './perform.ts';
export { fixedEnvironment, type Stage, stageOf } from './stage.ts';
