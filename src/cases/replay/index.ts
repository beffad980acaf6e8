export { Shelf, type StaleSession } from './library.ts';
export { type LoadedRecording, loadRecording } from './load.ts';
export { firstMoment, taskOf } from './replay.ts';
export { createVcr, isLive, type Vcr } from './serve.ts';
export type { AppliedMark, DeltaOptions } from './serve-session.ts';
