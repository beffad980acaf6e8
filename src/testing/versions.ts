import { toTimestamp } from '../core/time.ts';
import type { Git } from '../git/git.ts';
import { systemClock } from '../world/system.ts';
import type { TapeHeader } from '../world/tape-file.ts';
import type { TestContext } from './context.ts';

/** What a recording is made with. */
export const madeNow = async (
  git: Git,
  { version }: Pick<TestContext, 'version'>,
): Promise<Omit<TapeHeader, 'case' | 'step'>> => ({
  reprise: version,
  git: (await git.line(['--version'])).replace(/^git version /, ''),
  node: process.version.slice(1),
  recorded_at: toTimestamp(systemClock.now()),
});
