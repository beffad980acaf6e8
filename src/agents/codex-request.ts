import { RepriseError } from '../core/errors.ts';
import type { SessionRequest } from './session.ts';

const sandboxes = { 'read-only': 'read-only', edit: 'workspace-write', full: 'danger-full-access' } as const;

/** The sandbox that keeps what a preset promises. */
export const sandboxOf = ({ permissions }: SessionRequest) => sandboxes[permissions.preset];

/** `codex exec` never asks, so that rules would mean nothing to it. */
export const asksForApproval = ({ permissions: { allow, deny, otherwise } }: SessionRequest): boolean =>
  allow.length > 0 || deny.length > 0 || otherwise === 'ask';

/**
 * With `untrusted` it asks about every command that is not known to be harmless, so that a rule can forbid it. With
 * `on-request` all runs in the sandbox, and it asks only to leave that: rules that allow something take nothing away.
 */
export const approvalPolicyOf = ({ permissions: { deny, otherwise } }: SessionRequest) =>
  deny.length > 0 || otherwise === 'ask' ? 'untrusted' : 'on-request';

/** Throws if the session is to go on in a copy. */
export function refuseFork({ resume }: SessionRequest): void {
  if (!resume?.fork) return;
  throw new RepriseError('AGENT_FAILED', 'codex cannot go on in a copy of a session', {
    hint: 'resume the session itself, or begin a new one',
  });
}
