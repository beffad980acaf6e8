import type { ErrorData } from '../core/errors.ts';
import type { ProcessEnd } from './start.ts';

interface Circumstances {
  readonly logFile: string;
  readonly bashIsMissing: boolean;
}

const quotedLines = 10;
const quotedLineLength = 300;

/** What went wrong with a script, with the end of its output and where to read on; `undefined` if nothing did. */
export function describeShellFailure(
  end: ProcessEnd,
  { logFile, bashIsMissing }: Circumstances,
): ErrorData | undefined {
  const hint = [
    bashIsMissing &&
      'bash is not installed, so sh ran the script: install bash, or write `shell: sh` and plain sh.',
    `The whole output is in ${logFile}`,
  ]
    .filter(Boolean)
    .join(' ');
  switch (end.kind) {
    case 'couldNotStart':
      return end.error;
    case 'signalled':
      return { code: 'KILLED', message: withOutput(`was ended by ${end.signal}`, end.tail), hint };
    case 'exited': {
      const { exitCode } = end;
      if (exitCode === 0) return undefined;
      return {
        code: 'EXIT_NONZERO',
        message: withOutput(`exited with code ${exitCode}`, end.tail),
        hint,
        exitCode,
      };
    }
  }
}

function withOutput(message: string, tail: string): string {
  const lines = tail.trimEnd().split(/\r?\n/).slice(-quotedLines);
  const quoted = lines.map(line =>
    line.length > quotedLineLength ? `${line.slice(0, quotedLineLength)}…` : line,
  );
  return tail.trim() === '' ? message : `${message}\n${quoted.join('\n')}`;
}
