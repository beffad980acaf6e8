import { DefinitionError } from '../../workflow/problems.ts';
import { loadCase } from './load.ts';
import type { CaseManifest } from './manifest.ts';

/** Loads a case from text. */
export const load = (text: string): CaseManifest =>
  loadCase({ file: '/project/cases/small/small.toml', displayFile: 'small.toml', text });

function thrownBy(text: string): DefinitionError {
  try {
    load(text);
  } catch (error) {
    if (error instanceof DefinitionError) return error;
    throw error;
  }
  throw new Error('the case file has no problems');
}

/** Returns the message of the loader. Throws if the text is valid. */
export const problemsIn = (text: string): string => `\n${thrownBy(text).message}\n`;

/** Returns one line per problem: line and column, the text above the carets, the message and the hint. */
export function shortProblemsIn(text: string): string {
  const lines = thrownBy(text).problems.map(({ message, hint, position, excerpt = '' }) => {
    const [line = '', carets = ''] = excerpt.split('\n');
    const pointedAt = line.slice(carets.indexOf('^'), carets.length);
    return `${position?.line}:${position?.column} [${pointedAt}] ${message}${hint ? ` (${hint})` : ''}`;
  });
  return lines.length > 1 ? `\n${lines.join('\n')}\n` : (lines[0] ?? '');
}
