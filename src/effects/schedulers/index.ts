export { replayScheduler } from './replay.ts';
export { rerecordScheduler } from './rerecord.ts';
export { roundRobinScheduler } from './round-robin.ts';
