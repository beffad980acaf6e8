export { settled, stagePaths, type TestContext } from './context.ts';
export { failureLines } from './reporters/default.ts';
export { type CaseFailure, type CaseResult, caseTitle, type FailureKind } from './result.ts';
export { runCase } from './run-case.ts';
export { orStopped, type SnapshotMode } from './snapshot/snapshot.ts';
export { orphanResult } from './test-command.ts';
