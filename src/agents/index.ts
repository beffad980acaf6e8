export type {
  AgentDefinition,
  AgentDefinitions,
  AgentInput,
  AgentKind,
  Preset,
  Script,
  ScriptStep,
} from './agent.ts';
export { isStartRace, permissionDenied } from './driver/failures.ts';
export { systemPromptOf } from './driver/result.ts';
export { judgedTurn, openingTag, promptWithoutKey, withEnding } from './next-key.ts';
export { builtInAgents, deferred, hasPermissions, lazySessions, permissionProblem } from './open-session.ts';
export type { PermissionPolicy } from './permissions/permissions.ts';
export { scriptedSessions } from './scripted/scripted.ts';
export {
  type AgentEvent,
  addUsage,
  type Denial,
  type HostAnswer,
  type HostQuestion,
  noUsage,
  type ResumeRequest,
  type Session,
  type SessionCut,
  type SessionFactory,
  type SessionHost,
  type SessionRequest,
  type SessionResult,
  suspendSession,
  type TurnEnd,
  type Usage,
} from './session.ts';
