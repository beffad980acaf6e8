export { agentsFor, loadAgents } from './agents.ts';
export {
  isYamlFile,
  knownWorkflows,
  type LoadedDefinition,
  loadDefinition,
  loadFile,
  loadRecordedDefinition,
} from './definitions.ts';
export { type ExitCode, exitCodeOfError, exitCodeOfResult, exitCodes } from './exit-codes.ts';
export {
  type ApprovalQuestion,
  type CommandIo,
  type Host,
  type Once,
  type OpenStore,
  rememberOnce,
  styleOf,
  writeLines,
} from './host.ts';
export { thisOwner, userName } from './identity.ts';
export {
  liveHost,
  type OpenEngineOptions,
  type OpenedEngine,
  openEngine,
  openStore,
  storeFile,
} from './open-engine.ts';
export {
  commandSuffix,
  configFile,
  displayPath,
  excludeFromGit,
  findProject,
  findUpwards,
  ignoredFolders,
  type Project,
  type ProjectContext,
  type ProjectOptions,
  readConfig,
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
  type StoreMode,
  selectRun,
  selectUnit,
  shownStatus,
  type UnitWork,
  unitWork,
  withStoredRuns,
} from './runs.ts';
export { workerRules } from './worker-rules.ts';
