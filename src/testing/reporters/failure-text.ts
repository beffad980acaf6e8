import type { CaseFailure, CaseResult, FailureKind } from '../../cases/result.ts';
import { hintLines } from '../../terminal/errors.ts';
import type { Colour, Paint } from '../../terminal/text.ts';
import { shellWord } from '../../terminal/words.ts';
import { safeLine, safeOutput } from '../../view/safe-text.ts';
import { caseTitle } from '../summary.ts';

const mostDiffLines = 300;

/** A failure in full: what, where, the difference and what to type next. */
export function failureLines(result: CaseResult, failure: CaseFailure, paint: Paint): readonly string[] {
  const [first = '', ...further] = failure.message.trim().split('\n').map(safeOutput);
  const step = failure.step === undefined ? '' : `${safeLine(failure.step)}: `;
  return [
    `${paint('red', failure.kind)}: ${step}${first}`,
    ...further.map(line => `  ${line}`.trimEnd()),
    ...placeLines(failure, paint),
    ...diffText(failure.diff ?? '', paint).map(line => `  ${line}`.trimEnd()),
    ...hintLines(hintOf(result, failure)),
  ];
}

/** `  at cases/two/two.toml:7`, unless the message begins with it. */
function placeLines({ file, line, message }: CaseFailure, paint: Paint): readonly string[] {
  if (file === undefined || message.includes(file)) return [];
  return [`  ${paint('dim', `at ${safeLine(file)}${line === undefined ? '' : `:${line}`}`)}`];
}

const colours: Readonly<Record<string, Colour>> = { '+': 'green', '-': 'red', '@': 'cyan' };

function diffText(diff: string, paint: Paint): readonly string[] {
  const lines = diff.replace(/\n$/, '').split('\n');
  if (lines.length === 1 && lines[0] === '') return [];
  const shown = lines.slice(0, mostDiffLines).map(line => paint(colours[line[0] ?? ''], safeOutput(line)));
  const more = lines.length - mostDiffLines;
  return more > 0 ? [...shown, paint('dim', `... and ${more} more lines`)] : shown;
}

const remedies: Readonly<Record<FailureKind, readonly [options: string, why: string]>> = {
  diverged: [' --record', 'if it is meant to do that now, record it again'],
  witness: [' --record', 'if less is meant to go on at once now, record it again'],
  'left-over': [' --record', 'if that is meant not to be asked for any more, record it again'],
  stale: [' --record', 'record it again'],
  leak: [' --record', 'once it is out of what the case prints and writes'],
  snapshot: [' --accept', 'if the new one is right'],
  expectation: ['', 'once it is mended'],
  trigger: ['', 'once it is mended'],
  definition: ['', 'once it is mended'],
  timeout: ['', 'give the step a longer `timeout`, or mend what hangs, and run it again'],
  race: ['', 'to see it once more'],
  error: ['', 'to run it again'],
};

/** Every failure says what to type next, if not in its own words. */
export function hintOf(result: Pick<CaseResult, 'name' | 'group'>, failure: CaseFailure): string {
  const [options, why] = remedies[failure.kind];
  const own = failure.hint?.trim() ?? '';
  if (own.includes('reprise ')) return own;
  const command = `${why}: reprise test ${shellWord(caseTitle(result))}${options}`;
  return own === '' ? command : `${own}\n${command}`;
}
