import { expect, it } from 'vitest';
import { linesOf } from '../step/agent/live-session.ts';
import { withoutThoughts, withShownOutputs } from './encode.ts';
import type { RecordedSession } from './session-file.ts';

const sessionWith = (output: string) =>
  ({
    kind: 'session',
    lines: [{ kind: 'event', event: { type: 'tool-end', id: 'a', ok: true, output } }],
  }) as unknown as RecordedSession;

const eventIn = (recording: object) => {
  const [line] = (recording as RecordedSession).lines;
  if (line?.kind !== 'event' || line.event.type !== 'tool-end') throw new Error('no end of a tool');
  return line.event;
};

it('shortens the output of a tool by omitting the middle, which is never shown', () => {
  const printed = Array.from({ length: 900 }, (_, at) => `line ${at}`).join('\n');
  const cut = eventIn(withShownOutputs(sessionWith(printed)));
  expect(cut.output).toContain('line 0\n');
  expect(cut.output).toContain(`[… ${printed.length - 2200} characters …]`);
  expect(cut.output?.endsWith('line 899')).toBe(true);
  expect(linesOf(cut)).toBe(linesOf(eventIn(sessionWith(printed))));
  expect(eventIn(withShownOutputs(sessionWith('short'))).output).toBe('short');
  expect(eventIn(withShownOutputs(sessionWith('x'.repeat(2300)))).output).toHaveLength(2300);
});

it('drops thoughts', () => {
  const [line] = sessionWith('a').lines;
  const thought = { kind: 'event', event: { type: 'thought', text: 'Hm.' } } as const;
  const recording = { ...sessionWith('a'), lines: line ? [thought, line] : [] };
  expect(withoutThoughts(recording)).toEqual(sessionWith('a'));
});
