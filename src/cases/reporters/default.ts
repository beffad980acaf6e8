import { formatDuration } from '../../core/index.ts';
import {
  type Colour,
  count,
  displayWidth,
  filled,
  filledBefore,
  type Glyphs,
  glyphsFor,
  hintLines,
  type Paint,
  painter,
  shellWord,
  truncate,
} from '../../terminal/index.ts';
import { firstLine, safeLine, safeOutput } from '../../view/index.ts';
import {
  type CaseFailure,
  type CaseName,
  type CaseResult,
  type CaseStatus,
  caseTitle,
  type FailureKind,
  type TestReporter,
  type TestSummary,
} from '../result.ts';

/** Output of a reporter and its capabilities. */
export interface TestReporterOptions {
  readonly write: (text: string) => void;
  readonly color: boolean;
  readonly columns: number;
  /** Whether the output supports Unicode. Defaults to `true`. */
  readonly unicode?: boolean | undefined;
  /** Path from the root of the repository to the working directory, such as `packages/a/`. Only for annotations. */
  readonly pathPrefix?: string | undefined;
}

const mostDiffLines = 300;

/** Formats a failure in full: what happened, where, the diff, and what to type next. */
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

/** Returns a line such as `  at cases/two/two.toml:7`, unless the message names the file. */
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
  diverged: [' --record', 'if the new behavior is intended, record the case again'],
  witness: [' --record', 'if less parallelism is intended, record the case again'],
  'left-over': [' --record', 'if it is no longer needed, record the case again'],
  stale: [' --record', 'record it again'],
  leak: [' --record', 'after removing it from the output and files of the case'],
  snapshot: [' --accept', 'if the new snapshot is correct'],
  expectation: ['', 'after fixing the problem'],
  trigger: ['', 'after fixing the problem'],
  definition: ['', 'after fixing the problem'],
  timeout: ['', 'give the command a longer `timeout` or fix the cause, then run the case again'],
  race: ['', 'to reproduce it'],
  error: ['', 'to run it again'],
};

/** Returns the hint of a failure, with a default command unless the failure names one. */
export function hintOf(result: Pick<CaseResult, 'name' | 'group'>, failure: CaseFailure): string {
  const [options, why] = remedies[failure.kind];
  const own = failure.hint?.trim() ?? '';
  if (own.includes('reprise ')) return own;
  const command = `${why}: reprise test ${shellWord(caseTitle(result))}${options}`;
  return own === '' ? command : `${own}\n${command}`;
}

const durationWidth = 7;
const narrowestNote = 16;

type StatusMark = 'completed' | 'failed' | 'running' | 'skipped';

const marks: Readonly<Record<CaseStatus, readonly [StatusMark, Colour]>> = {
  passed: ['completed', 'green'],
  failed: ['failed', 'red'],
  recorded: ['running', 'cyan'],
  accepted: ['completed', 'cyan'],
  skipped: ['skipped', 'dim'],
};

/** Reporter for people: a line for each case as it ends, then all failures in full, then a summary. */
export function createDefaultReporter(options: TestReporterOptions): TestReporter {
  return new DefaultReporter(options);
}

class DefaultReporter implements TestReporter {
  readonly #write: (text: string) => void;
  readonly #columns: number;
  readonly #paint: Paint;
  readonly #glyphs: Glyphs;
  readonly #failed: CaseResult[] = [];
  #nameWidth = 0;

  constructor({ write, color, columns, unicode }: TestReporterOptions) {
    this.#write = write;
    this.#columns = columns;
    this.#paint = painter(color);
    this.#glyphs = glyphsFor(unicode);
  }

  onStart(cases: readonly CaseName[]): void {
    const widest = cases.reduce((width, each) => Math.max(width, displayWidth(safeLine(caseTitle(each)))), 0);
    this.#nameWidth = Math.min(widest, this.#columns - durationWidth - 6);
  }

  onCase(result: CaseResult): void {
    if (result.status === 'failed') this.#failed.push(result);
    this.#line(this.#caseLine(result));
    for (const note of result.notes) this.#line(`  ${this.#paint('dim', `note: ${safeLine(note)}`)}`);
  }

  onEnd(summary: TestSummary): void {
    for (const result of this.#failed) {
      this.#line('');
      this.#line(this.#paint('bold', `${this.#glyphs.failed} ${safeLine(caseTitle(result))}`));
      result.failures.forEach((failure, index) => {
        if (index > 0) this.#line('');
        for (const line of failureLines(result, failure, this.#paint)) this.#line(`  ${line}`.trimEnd());
      });
    }
    if (summary.total > 0) this.#line('');
    this.#line(this.#summaryLine(summary));
  }

  #caseLine(result: CaseResult): string {
    const [glyph, colour] = marks[result.status];
    const name = filled(safeLine(caseTitle(result)), this.#nameWidth, this.#glyphs.ellipsis);
    const duration = result.status === 'skipped' ? '' : formatDuration(result.durationMs);
    const took = filledBefore(duration, durationWidth);
    const room = this.#columns - displayWidth(`${this.#glyphs[glyph]} ${name}  ${took}  `);
    const note = room < narrowestNote ? '' : truncate(noteOf(result), room, this.#glyphs.ellipsis);
    const painted = `${this.#paint(colour, this.#glyphs[glyph])} ${name}  ${this.#paint('dim', took)}`;
    return note === '' ? painted : `${painted}  ${this.#paint(colour, note)}`;
  }

  #summaryLine(summary: TestSummary): string {
    const { total, durationMs } = summary;
    if (total === 0) return 'no cases';
    const parts = (['failed', 'passed', 'recorded', 'accepted', 'skipped'] as const)
      .filter(status => summary[status] > 0)
      .map(status => this.#paint(marks[status][1], `${summary[status]} ${status}`));
    const all = parts.length === 1 ? '' : ` of ${count(total, 'case')}`;
    return `${parts.join(', ')}${all} in ${formatDuration(durationMs)}`;
  }

  #line(text: string): void {
    this.#write(`${text}\n`);
  }
}

/** Returns the text beside the name of a case. */
function noteOf({ status, failures }: CaseResult): string {
  const [first] = failures;
  if (!first) return status === 'passed' ? '' : status;
  const step = first.step === undefined ? '' : `${safeLine(first.step)}: `;
  return `${step}${firstLine(first.message)}`;
}
