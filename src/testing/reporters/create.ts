import { createDefaultReporter } from '../../cases/reporters/default.ts';
import { createGithubReporter } from '../../cases/reporters/index.ts';
import { createJunitReporter } from '../../cases/reporters/junit.ts';
import type { TestReporter } from '../../cases/result.ts';
import { createJsonReporter } from './json.ts';
import type { TestReporterOptions } from './options.ts';

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
