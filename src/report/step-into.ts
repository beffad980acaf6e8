import { posix } from 'node:path';
import { shellWord } from '../terminal/words.ts';
import type { StepProgress } from '../view/step-progress.ts';

const resumeWords: Readonly<Record<string, string>> = { claude: 'claude --resume', codex: 'codex resume' };

/**
 * What to type to go on with the session of a step by hand: `cd <workspace> && claude --resume <id>`. `undefined` if
 * there is no session, its agent cannot do that, or its folder is gone. `root`: the way to the project's root.
 */
export function stepInto({ work }: StepProgress, root: string): string | undefined {
  const { session, workspace } = work;
  const words = session && Object.hasOwn(resumeWords, session.kind) ? resumeWords[session.kind] : undefined;
  if (words === undefined || session?.sessionId === undefined) return undefined;
  const folder = posix.join(root, workspace?.path ?? '.');
  const go = folder === '.' ? '' : `cd ${shellWord(folder)} && `;
  return `${go}${words} ${shellWord(session.sessionId)}`;
}
