/** Reprise as a library: define workflows, run them durably, look at what happened. */
export type { AgentDefinition, AgentKind, Preset } from './agents/agent.ts';
export type {
  AgentEvent,
  Session,
  SessionFactory,
  SessionHost,
  SessionRequest,
  SessionResult,
} from './agents/session.ts';
export { type ErrorCode, type ErrorData, type Position, RepriseError } from './core/errors.ts';
export type { EventOf, EventType, HistoryEvent } from './core/events.ts';
export type { Json, JsonObject } from './core/json.ts';
export type {
  Definition,
  Engine,
  ForkOptions,
  ResumeOptions,
  RunOptions,
  StartOptions,
} from './engine/engine.ts';
export type { Observation, Observer, WorktreeSettings } from './engine/environment.ts';
export { canonicalOrder, type Digests, digestsOf } from './engine/history/digest.ts';
export type { ReplayResult } from './engine/history/replay.ts';
export { findReadySteps } from './engine/run/planner.ts';
export type { RunResult, Waiting } from './engine/run/result.ts';
export { type OpenEngineOptions, type OpenedEngine, openEngine } from './project/open-engine.ts';
export { memoryStore } from './store/memory.ts';
export type { EventStore, RunStatus, RunSummary } from './store/port.ts';
export { openSqliteStore } from './store/sqlite/store.ts';
export {
  type After,
  type AgentPermissions,
  type AgentStepOptions,
  type AgentText,
  type Approval,
  type ApproveOptions,
  agent,
  approve,
  type Budget,
  type FunctionStepOptions,
  isWorkflow,
  type JudgeOptions,
  type Landed,
  type LandStepOptions,
  land,
  type Maybe,
  maybe,
  type OutputOf,
  type Outputs,
  type Retry,
  type Schema,
  type SelectOptions,
  type ShellStepOptions,
  type StepHandle,
  shell,
  step,
  type Timeout,
  type WorkerResult,
  type WorkerResults,
  type Workflow,
  type WorkflowInput,
  type WorkflowOptions,
  type WorkflowOutput,
  type WorkspaceSettings,
  workflow,
} from './workflow/builder/index.ts';
export type { FailurePolicy, StepContext, WorkflowModel } from './workflow/model.ts';
export { agentNames, DefinitionError, type NamedAgent, type Problem } from './workflow/problems.ts';
