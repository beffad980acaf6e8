import { stripVTControlCharacters } from 'node:util';
import { painter } from '../../terminal/index.ts';
import { firstLine, safeLine } from '../../view/index.ts';
import type { CaseResult, TestReporter, TestSummary } from '../result.ts';
import { outputLines } from '../snapshot/normalise.ts';
import { failureLines, type TestReporterOptions } from './default.ts';

const refused = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu;

/** Removes characters that XML does not allow, not even escaped. */
const allowed = (text: string): string => stripVTControlCharacters(text).replace(refused, '');

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
};

/** Escapes an attribute, including line feeds, which a parser would turn into spaces. */
const attribute = (text: string): string =>
  allowed(text).replace(/[&<>"'\t\n\r]/g, character => entities[character] ?? character);

/** Wraps arbitrary text in CDATA sections. */
const cdata = (text: string): string =>
  `<![CDATA[${allowed(text).replaceAll('\r\n', '\n').replaceAll(']]>', ']]]]><![CDATA[>')}]]>`;

type Attributes = Readonly<Record<string, string | number | undefined>>;

/** Formats an element. `content` is XML, and `undefined` attributes are omitted. */
function element(name: string, attributes: Attributes, content: readonly string[] = []): string {
  const pairs = Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [` ${key}="${attribute(String(value))}"`],
  );
  const start = `<${name}${pairs.join('')}`;
  return content.length === 0 ? `${start}/>` : `${start}>${content.join('')}</${name}>`;
}

/** Reporter for CI servers: one XML document with a suite for each group of cases, written at the end. */
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

/** Formats all failures of a case as one element, because many readers show only the first. */
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
