import { expect, test } from 'vitest';
import type { RecordedEntry } from '../../effects/recording/recording.ts';
import { loadCase } from '../manifest/load.ts';
import { caseText } from './case-text.ts';
import { type CutSegment, cutSegment, joinSegments, type RunSegment } from './segments.ts';

const entry = (n: number, op: string, rest: Partial<RecordedEntry> = {}): RecordedEntry => ({
  n,
  lane: 'engine#0',
  i: n,
  op,
  ...rest,
});

const done = { outcome: { kind: 'ok', value: null } } as const;

const legOf = (given: Partial<RunSegment>): RunSegment => ({
  folder: '/journal',
  step: 'run',
  command: 'run',
  args: ['fix.yaml'],
  entries: [],
  activities: [],
  files: {},
  exit: 0,
  ...given,
});

const parsed = (text: string) => loadCase({ file: '/a/a.toml', displayFile: 'a.toml', text });

test('a case file preserves arbitrary text in files and arguments', () => {
  const files = {
    'plain.yaml': 'name: plain\n',
    "it's.yaml": "a: 'b'''\n\\ \"\t\n",
    'odd.yaml': 'one\r\ntwo\u007f\u0000 ünï\n',
    'quote.yaml': "ends with '",
    'empty.yaml': '',
  };
  const args = ['a b.yaml', '--prompt=-x "y"\n\\'];
  const manifest = parsed(
    caseText({ description: 'A "run".', segments: [legOf({ args }) as CutSegment], base: undefined, files }),
  );
  expect(manifest.files).toEqual(files);
  expect(manifest.steps).toMatchObject([{ name: 'run', command: 'run', args, expect: { exit: 0 } }]);
});

test('a case kills the process after the last effect that finished before the crash', () => {
  const segment = cutSegment(
    legOf({
      exit: undefined,
      entries: [
        entry(0, 'clock.now', done),
        entry(1, 'shell.run.begin'),
        entry(2, 'store.append', done),
        entry(3, 'clock.now', done),
        entry(4, 'session.next.begin'),
        entry(5, 'store.append'),
      ],
    }),
  );
  expect(segment?.killedAfter).toEqual({ effect: 'clock.now', nth: 2 });
  expect(segment?.entries.map(({ n }) => n)).toEqual([0, 1, 2, 3]);
  expect(cutSegment(legOf({ exit: undefined, entries: [entry(0, 'git.base')] }))).toBeUndefined();
  const text = caseText({ description: 'x', segments: [segment as CutSegment], base: undefined, files: {} });
  expect(parsed(text).steps[0]?.killAfter).toEqual({ kind: 'effect', effect: 'clock.now', nth: 2 });
});

test('a case turns a signal into a trigger at the work that it interrupted', () => {
  const segments = [
    legOf({
      exit: 1,
      entries: [
        entry(0, 'keyboard.interrupt.begin'),
        entry(1, 'session.next.begin'),
        entry(2, 'session.next.begin'),
        entry(3, 'clock.now', done),
        entry(4, 'keyboard.interrupt.end', { outcome: { kind: 'ok', value: 'ended by SIGTERM' } }),
      ],
    }) as CutSegment,
    legOf({ step: 'resume', command: 'resume', args: ['abc'] }) as CutSegment,
  ];
  const manifest = parsed(caseText({ description: 'x', segments, base: undefined, files: {} }));
  expect(manifest.triggers).toMatchObject([
    { step: 'run', label: 'session.next', nth: 2, action: { kind: 'signal', signal: 'SIGTERM' } },
  ]);
  expect(manifest.steps.map(({ expect: { exit } }) => exit)).toEqual([143, 0]);
});

test('joined recordings are numbered consecutively, with the lanes of each below its command', () => {
  const entries = [
    entry(0, 'clock.now', done),
    entry(1, 'lane.join', { args: ['engine#0/0', 'engine#0/1'], ...done }),
  ];
  const joined = joinSegments([legOf({ entries }), legOf({ step: 'resume', entries })] as CutSegment[]);
  expect(joined.entries.map(({ n, lane, i }) => [n, lane, i])).toEqual([
    [0, 'run/engine#0', 0],
    [1, 'run/engine#0', 1],
    [2, 'resume/engine#0', 0],
    [3, 'resume/engine#0', 1],
  ]);
  expect(joined.entries[3]?.args).toEqual(['resume/engine#0/0', 'resume/engine#0/1']);
  expect(joined.witness).toMatchObject({ mostOpen: 1, switches: 1 });
});
