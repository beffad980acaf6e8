import type { AgentDefinition } from '../../agents/agent.ts';
import type { PermissionPolicy } from '../../agents/permissions/permissions.ts';
import type { StepPermissions } from '../../workflow/model.ts';

export interface PolicyOf {
  readonly agent: AgentDefinition;
  readonly step?: StepPermissions | undefined;
  /** Commands that are run on the work anyway, as they were written. */
  readonly checks: readonly string[];
  /** Nothing in the workspace may change. */
  readonly readonly: boolean;
}

/** What an agent may do in a step: nobody is there to be asked, so what is not allowed is denied. */
export const policyOf = ({ agent, step, checks, readonly }: PolicyOf): PermissionPolicy => ({
  agent: agent.name,
  preset: readonly ? 'read-only' : (step?.preset ?? agent.permissions),
  allow: union(agent.allow, step?.allow),
  deny: union(agent.deny, step?.deny),
  checks,
  otherwise: 'deny',
});

const union = (first: readonly string[], second: readonly string[] = []): readonly string[] => [
  ...new Set([...first, ...second]),
];
