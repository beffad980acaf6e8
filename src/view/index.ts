export {
  costText,
  knownCost,
  nothingSpent,
  recordedCost,
  type Spending,
  sessionSpending,
  shortSpending,
  spendingText,
  spentTogether,
  unknownSession,
} from './cost.ts';
export { type RunStatusReport, runStatusOf } from './run-status.ts';
export { type AgentUnit, RunView, type StepUnit, viewOf } from './run-view.ts';
export type { StatusWord } from './step-board.ts';
export {
  agentAction,
  firstLine,
  furtherLines,
  type StepProgress,
  safeLine,
  safeOutput,
  safeText,
  type WaitingFor,
  type WorkspaceProgress,
} from './step-progress.ts';
