export { LineSplitter, type OutputStream } from './output.ts';
export { type Log, noLog, type OpenLog, openLogFile } from './output-file.ts';
export { type RunProgram, removeLeftovers, runProgram, temporaryFolder } from './program.ts';
export { ShellPool } from './shell-pool.ts';
export { type RunShellOptions, runShellStep, type ShellEnd } from './shell-step.ts';
export { describeStartFailure, type ProcessEnd, type RunningProcess, startProcess } from './start.ts';
export {
  abandonIncarnation,
  isAbandoned,
  isSameProcess,
  isVisible,
  type Marker,
  onAbandoned,
  type ProcessIdentity,
  processesNamed,
  readmitIncarnation,
  thisProcess,
} from './table.ts';
export { type EndedTrees, endTrees, markedWith } from './tree.ts';
