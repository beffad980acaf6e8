import type { TestReporter } from '../../cases/result.ts';
import type { TestReporterOptions } from './options.ts';

/** For programs: one object a line, of `"type": "case"` for each case as it ends, the last of `"type": "summary"`. */
export function createJsonReporter({ write }: Pick<TestReporterOptions, 'write'>): TestReporter {
  const line = (value: object) => write(`${JSON.stringify(value)}\n`);
  return {
    onCase: result => line({ type: 'case', ...result }),
    onEnd: summary => line({ type: 'summary', ...summary }),
  };
}
