import { expect, test } from 'vitest';
import type { RecordedEntry } from '../../effects/recording/recording.ts';
import { loadCase } from '../manifest/load.ts';
import { caseText } from './case-text.ts';
import { type CutLeg, cutLeg, joinLegs, type Leg } from './legs.ts';

const entry = (n: number, op: string, rest: Partial<RecordedEntry> = {}): RecordedEntry => ({
  n,
  lane: 'engine#0',
  i: n,
  op,
  ...rest,
});

const done = { outcome: { kind: 'ok', value: null } } as const;

const legOf = (given: Partial<Leg>): Leg => ({
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

test('texts of any kind survive in the file of a case', () => {
  const files = {
    'plain.yaml': 'name: plain\n',
    "it's.yaml": "a: 'b'''\n\\ \"\t\n",
    'odd.yaml': 'one\r\ntwo\u007f\u0000 ünï\n',
    'quote.yaml': "ends with '",
    'empty.yaml': '',
  };
  const args = ['a b.yaml', '--prompt=-x "y"\n\\'];
  const manifest = parsed(
    caseText({ description: 'A "run".', legs: [legOf({ args }) as CutLeg], base: undefined, files }),
  );
  expect(manifest.files).toEqual(files);
  expect(manifest.steps).toMatchObject([{ name: 'run', command: 'run', args, expect: { exit: 0 } }]);
});

test('a leg whose process died is killed after the last effect that was done', () => {
  const leg = cutLeg(
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
  expect(leg?.killedAfter).toEqual({ effect: 'clock.now', nth: 2 });
  expect(leg?.entries.map(({ n }) => n)).toEqual([0, 1, 2, 3]);
  expect(cutLeg(legOf({ exit: undefined, entries: [entry(0, 'git.base')] }))).toBeUndefined();
  const text = caseText({ description: 'x', legs: [leg as CutLeg], base: undefined, files: {} });
  expect(parsed(text).steps[0]?.killAfter).toEqual({ kind: 'effect', effect: 'clock.now', nth: 2 });
});

test('a signal becomes a trigger at the work that it interrupted', () => {
  const legs = [
    legOf({
      exit: 1,
      entries: [
        entry(0, 'keyboard.interrupt.begin'),
        entry(1, 'session.next.begin'),
        entry(2, 'session.next.begin'),
        entry(3, 'clock.now', done),
        entry(4, 'keyboard.interrupt.end', { outcome: { kind: 'ok', value: 'ended by SIGTERM' } }),
      ],
    }) as CutLeg,
    legOf({ step: 'resume', command: 'resume', args: ['abc'] }) as CutLeg,
  ];
  const manifest = parsed(caseText({ description: 'x', legs, base: undefined, files: {} }));
  expect(manifest.triggers).toMatchObject([
    { step: 'run', label: 'session.next', nth: 2, action: { kind: 'signal', signal: 'SIGTERM' } },
  ]);
  expect(manifest.steps.map(({ expect: { exit } }) => exit)).toEqual([143, 0]);
});

test('legs are numbered through, each below its step', () => {
  const entries = [
    entry(0, 'clock.now', done),
    entry(1, 'lane.join', { args: ['engine#0/0', 'engine#0/1'], ...done }),
  ];
  const joined = joinLegs([legOf({ entries }), legOf({ step: 'resume', entries })] as CutLeg[]);
  expect(joined.entries.map(({ n, lane, i }) => [n, lane, i])).toEqual([
    [0, 'run/engine#0', 0],
    [1, 'run/engine#0', 1],
    [2, 'resume/engine#0', 0],
    [3, 'resume/engine#0', 1],
  ]);
  expect(joined.entries[3]?.args).toEqual(['resume/engine#0/0', 'resume/engine#0/1']);
  expect(joined.witness).toMatchObject({ mostOpen: 1, switches: 1 });
});
