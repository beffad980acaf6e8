import { describe, expect, it } from 'vitest';
import { causeLines } from './errors.ts';
import { painter } from './text.ts';

describe('the cause of a failed run', () => {
  it('keeps each line of the hint on its own line, so that commands can be copied', () => {
    const hint = 'resolve it: git -C x rebase main\nto land again: reprise land r fix\u001B[2J\n';
    const error = { code: 'CANNOT_LAND', message: 'fix could not be landed\nit conflicts', hint };
    expect(causeLines({ error, step: 'land' }, painter(false))).toEqual([
      'land: fix could not be landed [CANNOT_LAND]',
      '  | it conflicts',
      '  hint: resolve it: git -C x rebase main',
      '        to land again: reprise land r fix',
    ]);
  });

  it('names the log file, unless the hint does', () => {
    const lines = (hint: string) =>
      causeLines({ error: { code: 'X', message: 'no', hint }, logFile: 'a.log' }, painter(false));
    expect(lines('look')).toContain('  log: a.log');
    expect(lines('look into a.log')).not.toContain('  log: a.log');
  });
});
