export {
  FileRefusedError,
  fileLimits,
  readBoundedFile,
  readBoundedText,
  readRecordedFile,
  readRecordedText,
  tooLarge,
} from './bounded-file.ts';
export {
  type Cancellation,
  Cancelled,
  conflicts,
  type Effect,
  type EffectDefinition,
  type EffectOutcome,
  isFlat,
  type Keys,
} from './effect.ts';
export { createLiveWorld } from './live-world.ts';
export {
  allTracers,
  type ChoosyTracer,
  createRecorder,
  type EntryPlace,
  renumbered,
  type TracedRequest,
  type Tracer,
  tapedArgs,
} from './tracer.ts';
export {
  type AbandonableWorld,
  atEndOfTurn,
  type LaneRef,
  type Mailbox,
  systemClock,
  systemIds,
  type World,
} from './world.ts';
