export { graphProblems, topologicalOrder } from './graph.ts';
export { maxCopies } from './matrix.ts';
export {
  type AgentBody,
  type AgentOutput,
  type ArtifactRule,
  type Body,
  type Command,
  type FailurePolicy,
  type FanOut,
  type FunctionBody,
  failurePolicies,
  type InputField,
  type Judge,
  type LandBody,
  ownScope,
  type Parser,
  type RetryRule,
  type RunBody,
  type Scope,
  type SelectRule,
  type ShellCommand,
  type SpendingLimit,
  type StepContext,
  type StepModel,
  type StepPermissions,
  type StepView,
  type WorkflowModel,
  type WorkRules,
  type WorkspaceRule,
} from './model.ts';
export { compileOutputSchema } from './output-schema.ts';
export { compilePattern, type Pattern, PatternError } from './pattern.ts';
export { agentNames, DefinitionError, formatProblem, type NamedAgent, type Problem } from './problems.ts';
