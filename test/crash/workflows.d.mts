import type { AgentDefinition } from '../../src/agents/agent.ts';
import type { WorkflowModel } from '../../src/workflow/model.ts';

export const workflows: Readonly<Record<string, { readonly model: WorkflowModel }>>;
export const agents: ReadonlyMap<string, AgentDefinition>;
/** The history of the run holds a failed step. */
export function noteFailure(): void;
/** Another process begins, which has not seen any. */
export function forgetFailure(): void;
