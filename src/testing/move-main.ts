import { execFileSync } from 'node:child_process';
import type { Play } from '../cases/perform/perform.ts';
import { RepriseError } from '../core/errors.ts';

/**
 * Moves the branch that a case is about, with its checkout, as somebody would who is not in the case. At once: whoever
 * is about to look at the branch must find it there. Throws GIT_FAILED.
 */
export function moveMain({ stage, env }: Pick<Play, 'stage' | 'env'>, commit: string): void {
  try {
    execFileSync('git', ['reset', '--quiet', '--keep', commit], { cwd: stage.repo, env, stdio: 'pipe' });
  } catch (cause) {
    const said = String((cause as { readonly stderr?: Buffer }).stderr ?? cause).trim();
    throw new RepriseError('GIT_FAILED', `main of the case cannot be moved to ${commit}: ${said}`, {
      hint: 'the commit must be in the repository of the case: in the pack of [base], or made by a step before',
      cause,
    });
  }
}
