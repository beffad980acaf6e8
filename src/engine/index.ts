export { type EngineEffects, keysOfClaims } from './effects.ts';
export {
  type Definition,
  Engine,
  type ForkOptions,
  type ResumeOptions,
  type RunOptions,
  type StartOptions,
} from './engine.ts';
export {
  attemptFileName,
  defaultSettings,
  type EngineSettings,
  type Environment,
  type HistoryFolders,
  logFile,
  logFolder,
  type Observation,
  type Observer,
  outsideEffects,
  recordedPath,
  resolveRecorded,
  type ShellRunner,
  unitFileName,
  type WorkScript,
  type WorktreeSettings,
} from './environment.ts';
export type { LoopMessage, StepEnd } from './run/messages.ts';
export { findReadySteps } from './run/planner.ts';
export { type RunResult, type Waiting, withoutVolatile } from './run/result.ts';
export { ignoreCancellation } from './run/run-loop.ts';
