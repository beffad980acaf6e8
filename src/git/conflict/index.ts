export type { Resolution } from './progress.ts';
export {
  abortResolution,
  type BeginResult,
  beginResolution,
  type ContinueResult,
  continueResolution,
} from './resolve.ts';
