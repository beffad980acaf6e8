export {
  type AdhocOptions,
  adhocLine,
  type JournalCommand,
  resumeLine,
  runLine,
  withLimits,
} from './command-line.ts';
export { journalFolders } from './retention.ts';
export {
  type DefinitionFiles,
  definitionFiles,
  entriesFile,
  filesFile,
  marksOfJournal,
  projectRedactor,
  type RunJournal,
  runOfJournal,
  stagingFolder,
} from './run-journal.ts';
export type { WorkerJournals } from './worker-journals.ts';
