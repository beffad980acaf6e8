import { painter } from '../../terminal/index.ts';
import { firstLine, safeLine } from '../../view/index.ts';
import { type CaseFailure, type CaseResult, caseTitle, type TestReporter } from '../result.ts';
import { outputLines } from '../snapshot/normalise.ts';
import { createDefaultReporter, failureLines, type TestReporterOptions } from './default.ts';
import { createJunitReporter } from './junit.ts';

/** Reporter for programs: one JSON object per line, with `"type": "case"` for each case and `"type": "summary"` last. */
function createJsonReporter({ write }: Pick<TestReporterOptions, 'write'>): TestReporter {
  const line = (value: object) => write(`${JSON.stringify(value)}\n`);
  return {
    onCase: result => line({ type: 'case', ...result }),
    onEnd: summary => line({ type: 'summary', ...summary }),
  };
}

/** Reporter for GitHub Actions: the default report, grouped output of failed cases, and an annotation per failure. */
function createGithubReporter(options: TestReporterOptions): TestReporter {
  const { write, pathPrefix = '' } = options;
  const text = createDefaultReporter({ ...options, write: each => write(harmless(each)) });
  const failed: CaseResult[] = [];
  return {
    onStart: cases => text.onStart?.(cases),
    onCase: result => {
      if (result.status === 'failed') failed.push(result);
      text.onCase?.(result);
    },
    onEnd: summary => {
      for (const result of failed) write(outputGroup(result));
      text.onEnd?.(summary);
      for (const result of failed)
        for (const failure of result.failures) write(annotation(result, failure, pathPrefix));
    },
  };
}

function outputGroup(result: CaseResult): string {
  if (result.steps.length === 0) return '';
  const steps = result.steps.flatMap(({ name, exitCode, output }) => [
    `--- ${safeLine(name)} --- ${exitCode === null ? 'killed' : `exit ${exitCode}`}`,
    ...outputLines(output),
  ]);
  const lines = steps.map(line => harmless(`${line}\n`)).join('');
  return `::group::${data(`output of ${caseTitle(result)}`)}\n${lines}::endgroup::\n`;
}

function annotation(result: CaseResult, failure: CaseFailure, pathPrefix: string): string {
  const properties = [
    `file=${property(`${pathPrefix}${failure.file ?? result.file}`)}`,
    ...(failure.line === undefined || failure.file === undefined ? [] : [`line=${failure.line}`]),
    `title=${property(`${caseTitle(result)}: ${firstLine(failure.message)}`)}`,
  ];
  const message = failureLines(result, failure, painter(false)).join('\n');
  return `::error ${properties.join(',')}::${data(message)}\n`;
}

/** Inserts a space into output that the runner would otherwise interpret as a workflow command. */
const harmless = (text: string): string => text.replace(/^(\s*):(?=:)/gm, '$1: ').replaceAll('##[', '## [');

const data = (text: string): string =>
  text.replaceAll('##[', '## [').replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');

const property = (text: string): string => data(text).replaceAll(':', '%3A').replaceAll(',', '%2C');

const reporters = {
  default: createDefaultReporter,
  json: createJsonReporter,
  junit: createJunitReporter,
  github: createGithubReporter,
} as const satisfies Readonly<Record<string, (options: TestReporterOptions) => TestReporter>>;

export type ReporterName = keyof typeof reporters;

export const reporterNames = Object.keys(reporters) as readonly ReporterName[];

export const createTestReporter = (name: ReporterName, options: TestReporterOptions): TestReporter =>
  reporters[name](options);
