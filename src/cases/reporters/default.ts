import { formatDuration } from '../../core/time.ts';
import { type Glyphs, glyphsFor } from '../../terminal/glyphs.ts';
import {
  type Colour,
  count,
  displayWidth,
  filled,
  filledBefore,
  type Paint,
  painter,
  truncate,
} from '../../terminal/text.ts';
import { failureLines } from '../../testing/reporters/failure-text.ts';
import type { TestReporterOptions } from '../../testing/reporters/options.ts';
import { caseTitle } from '../../testing/summary.ts';
import { firstLine, safeLine } from '../../view/safe-text.ts';
import type { CaseName, CaseResult, CaseStatus, TestReporter, TestSummary } from '../result.ts';

const durationWidth = 7;
const narrowestNote = 16;

type Mark = 'completed' | 'failed' | 'running' | 'skipped';

const marks: Readonly<Record<CaseStatus, readonly [Mark, Colour]>> = {
  passed: ['completed', 'green'],
  failed: ['failed', 'red'],
  recorded: ['running', 'cyan'],
  accepted: ['completed', 'cyan'],
  skipped: ['skipped', 'dim'],
};

/** For people: a line for each case as it ends, then all failures in full, then how it went. */
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

/** What there is to say beside the name. */
function noteOf({ status, failures }: CaseResult): string {
  const [first] = failures;
  if (!first) return status === 'passed' ? '' : status;
  const step = first.step === undefined ? '' : `${safeLine(first.step)}: `;
  return `${step}${firstLine(first.message)}`;
}
