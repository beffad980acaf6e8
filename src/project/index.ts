export { agentsFor, loadAgents } from './agents.ts';
export {
  isYamlFile,
  knownWorkflows,
  type LoadedDefinition,
  loadDefinition,
  loadFile,
  loadRecordedDefinition,
} from './definitions.ts';
export {
  type ApprovalQuestion,
  type CommandIo,
  type ExitCode,
  exitCodeOfError,
  exitCodeOfResult,
  exitCodes,
  type Host,
  type Once,
  type OpenStore,
  rememberOnce,
  styleOf,
  thisOwner,
  userName,
  writeLines,
} from './host.ts';
export { liveHost, type OpenEngineOptions, type OpenedEngine, openEngine } from './open-engine.ts';
export { expiredStates, openState, openStore, type StoreMode } from './open-state.ts';
export {
  commandSuffix,
  configFile,
  displayPath,
  findProject,
  findUpwards,
  lockTimeoutOf,
  type Project,
  type ProjectContext,
  type ProjectOptions,
  readConfig,
  workspacesOf,
  worktreesOf,
} from './project.ts';
export {
  hasEnded,
  listed,
  type Ownership,
  openStoredRuns,
  ownershipOf,
  requireNotEnded,
  type ShownStatus,
  selectRun,
  selectUnit,
  shownStatus,
  type UnitWork,
  unitWork,
  withStoredRuns,
} from './runs.ts';
export { excludeFromGit, excludeWorkspaces, ignoredFolders, storeFile } from './state.ts';
export { workerRules } from './worker-rules.ts';
