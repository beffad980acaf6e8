import type { LandingCourse } from './landing/landing.ts';
import { workAt } from './landing/prepare.ts';
import type { Ready, Verified } from './landing-steps.ts';
import { type ScratchRequest, withScratchWorktree } from './scratch-worktree.ts';

/** What has to pass before anything moves. */
export interface Verification {
  /** A folder that does not exist: the result is checked out there for as long as it is verified. */
  readonly path: string;
  /** Patterns of ignored files to copy there. */
  readonly include?: readonly string[] | undefined;
  readonly run: (checkout: { readonly path: string; readonly commit: string }) => Promise<Verdict>;
}

export interface Verdict {
  readonly passed: boolean;
  /** The end of what the command printed. */
  readonly output: string;
}

export interface VerifyRequest
  extends Omit<ScratchRequest, 'path' | 'include' | 'commit'>,
    Pick<LandingCourse, 'source'>,
    Pick<Ready, 'commit'> {
  readonly verification: Verification;
}

/** Tries what would land in a checkout of its own. To be called with the lock `land`. */
export async function verifyLanding(request: VerifyRequest): Promise<Verified> {
  const { repository, source, commit, verification } = request;
  const { path, include, run } = verification;
  const { passed, output } = await withScratchWorktree({ ...request, path, include }, () =>
    run({ path, commit }),
  );
  return passed ? { passed } : { passed, output, ...(await workAt(repository, source)) };
}
