import type { Json } from '../core/json.ts';
import { decide } from './permissions/permissions.ts';
import { realPathOf } from './resolve-path.ts';
import type { Ruling } from './ruling.ts';
import type { SessionRequest } from './session.ts';
import { pathsOf } from './tool-use.ts';

/** Applies the policy of a session to what the agent wants to do in its workspace. */
export function applyPolicy({ permissions, cwd }: SessionRequest): (tool: string, input: Json) => Ruling {
  const workspace = realPathOf(cwd, '/');
  return (tool, input) => {
    const paths = pathsOf(tool, input).map(path => realPathOf(path, cwd));
    const decision = decide(permissions, { tool, input, paths, workspace });
    const isOpen = decision.kind === 'deny' && decision.lineToAdd !== undefined;
    return isOpen && permissions.otherwise === 'ask'
      ? { kind: 'ask', lineToAdd: decision.lineToAdd }
      : { kind: 'decided', decision };
  };
}
