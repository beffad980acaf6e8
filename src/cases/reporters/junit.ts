import { painter } from '../../terminal/text.ts';
import { failureLines } from '../../testing/reporters/failure-text.ts';
import type { TestReporterOptions } from '../../testing/reporters/options.ts';
import { cdata, element } from '../../testing/reporters/xml.ts';
import { outputLines } from '../../testing/snapshot/output-lines.ts';
import { firstLine, safeLine } from '../../view/safe-text.ts';
import type { CaseResult, TestReporter, TestSummary } from '../result.ts';

/** For CI servers: one XML document, with a suite for each group of cases. Written when all is over. */
export function createJunitReporter({ write }: Pick<TestReporterOptions, 'write'>): TestReporter {
  const results: CaseResult[] = [];
  return {
    onCase: result => void results.push(result),
    onEnd: summary => write(`<?xml version="1.0" encoding="UTF-8"?>\n${document(results, summary)}\n`),
  };
}

function document(results: readonly CaseResult[], { durationMs }: TestSummary): string {
  const groups = [...new Set(results.map(({ group }) => group))];
  const suites = groups.map(group =>
    suite(
      group,
      results.filter(result => result.group === group),
    ),
  );
  const attributes = { name: 'reprise test', ...counts(results), time: seconds(durationMs) };
  return element('testsuites', attributes, suites.length === 0 ? [] : ['\n', ...suites]);
}

function suite(group: string, results: readonly CaseResult[]): string {
  const time = seconds(results.reduce((sum, { durationMs }) => sum + durationMs, 0));
  const cases = results.map(result => `    ${testcase(result)}\n`);
  const attributes = { name: suiteName(group), ...counts(results), time };
  return `  ${element('testsuite', attributes, ['\n', ...cases, '  '])}\n`;
}

function testcase(result: CaseResult): string {
  const { name, group, file, durationMs, status } = result;
  const attributes = { name, classname: suiteName(group), file, time: seconds(durationMs) };
  if (status === 'skipped') return element('testcase', attributes, [skipped(result)]);
  return element('testcase', attributes, status === 'failed' ? [failure(result), ...output(result)] : []);
}

const skipped = ({ notes: [reason] }: CaseResult): string =>
  element('skipped', { message: reason === undefined ? undefined : firstLine(reason) });

/** One element for all of them: many readers show only the first. */
function failure(result: CaseResult): string {
  const [first] = result.failures;
  const texts = result.failures.map(each => failureLines(result, each, painter(false)).join('\n'));
  const message = first ? firstLine(first.message) : 'failed';
  return element('failure', { message, type: first?.kind ?? 'error' }, [cdata(texts.join('\n\n'))]);
}

function output({ steps }: CaseResult): readonly string[] {
  if (steps.length === 0) return [];
  const sections = steps.map(step => [`--- ${safeLine(step.name)} ---`, ...outputLines(step.output), '']);
  return [element('system-out', {}, [cdata(sections.flat().join('\n'))])];
}

const counts = (results: readonly CaseResult[]) => ({
  tests: results.length,
  failures: results.filter(({ status }) => status === 'failed').length,
  errors: 0,
  skipped: results.filter(({ status }) => status === 'skipped').length,
});

const suiteName = (group: string): string => (group === '' ? 'cases' : group);
const seconds = (ms: number): string => (ms / 1000).toFixed(3);
