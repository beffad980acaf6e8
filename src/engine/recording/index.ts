export { SeriesNumbers } from './activity.ts';
export { parseSessionFile } from './decode.ts';
export { withoutThoughts, withShownOutputs } from './encode.ts';
export { setTextsApart } from './long-texts.ts';
export {
  commandOf,
  createSessionRecorder,
  promptOf,
  type SessionRecorder,
  secretsOfSession,
  type TaskUnit,
} from './recorder.ts';
export {
  formatRecording,
  type RecordedActivity,
  type RecordedSession,
  type RecordedShell,
  type SessionFile,
  sessionFileName,
  shellRole,
} from './session-file.ts';
