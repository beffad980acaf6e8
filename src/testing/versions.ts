import type { TestContext } from '../cases/context.ts';
import { toTimestamp } from '../core/time.ts';
import type { TapeHeader } from '../effects/recording/tape-file.ts';
import { systemClock } from '../effects/system.ts';
import type { Git } from '../git/git.ts';

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
