import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RepriseError } from '../../core/errors.ts';
import type { EffectOutcome } from '../../effects/effect.ts';
import { type RecordedEntry, type Recording, witnessOf } from '../../effects/recording/recording.ts';
import { type CaseFiles, fromCaseFiles, sha256, toCaseFiles } from './case-files.ts';

const made = { reprise: '0.1.0', git: '2.39.5', node: '20.19.0', recorded_at: '2026-01-02T03:04:05.000Z' };
const main = { ref: 'refs/heads/main', commit: '0123456789abcdef0123456789abcdef01234567' };

/** Numbers the entries as a world does. */
function recordingOf(pending: readonly Omit<RecordedEntry, 'n' | 'i'>[]): Recording {
  const next = new Map<string, number>();
  const entries = pending.map((entry, n): RecordedEntry => {
    const i = next.get(entry.lane) ?? 0;
    next.set(entry.lane, i + 1);
    return { ...entry, n, i };
  });
  return { entries, witness: witnessOf(entries) };
}

const step = (lane: string, op: string, more: Partial<RecordedEntry> = {}) => ({ lane, op, ...more });
const ok = (value: unknown): Partial<RecordedEntry> => ({ outcome: { kind: 'ok', value } });

const twoLanes = recordingOf([
  step('a', 'clock.now', ok(5)),
  step('b', 'clock.now', ok(6)),
  step('a/engine#0', 'shell.next.begin', { keys: { writes: ['wt:x'] }, args: { at: '<PATH:repo>' } }),
  step('a/engine#0/10', 'git.land', { keys: { reads: ['r'], writes: ['w'] }, ...ok(null) }),
  step('b', 'git.land', {
    outcome: { kind: 'failed', error: { code: 'GIT_FAILED', message: 'no', hint: 'try again' } },
  }),
  step('a/engine#0/2', 'mail.receive', { outcome: { kind: 'cancelled' } }),
  step('a/engine#0', 'shell.next.end', ok({ exit: 0 })),
  step('b', 'git.commit'),
]);

const files = (recording = twoLanes, more: Partial<Parameters<typeof toCaseFiles>[0]> = {}) =>
  toCaseFiles({ case: 'two', recording, made, main, ...more });
const read = (given: CaseFiles, others?: Readonly<Record<string, string>>) =>
  fromCaseFiles({ case: 'two', files: given, others, display: name => `cases/two/${name}` });

const problemOf = (given: CaseFiles, others?: Readonly<Record<string, string>>): string => {
  try {
    read(given, others);
    return 'no problem';
  } catch (error) {
    if (!(error instanceof RepriseError)) throw error;
    return `${error.code}: ${error.message}\nhint: ${error.hint}`;
  }
};

/** Returns the files with one of them changed. */
const changed = (name: string, change: (text: string) => string): CaseFiles => {
  const given = files();
  const text = change(given[name] ?? '');
  expect(text).not.toBe(given[name]);
  return { ...given, [name]: text };
};

describe('the files of a case', () => {
  it('are one tape per command, sorted by lane, and a score', () => {
    const { 'two__b.vcr': _, 'two.score': score = '', ...rest } = files();
    expect(Object.keys(rest)).toEqual(['two__a.vcr']);
    expect(rest['two__a.vcr']).toBe(
      `${[
        '{"format":2,"kind":"tape","case":"two","step":"a","reprise":"0.1.0","git":"2.39.5","node":"20.19.0","recorded_at":"2026-01-02T03:04:05.000Z","redaction":1}',
        '{"lane":"","i":0,"op":"clock.now","ok":5}',
        '{"lane":"engine#0","i":0,"op":"shell.next.begin","keys":{"writes":["wt:x"]},"args":{"at":"<PATH:repo>"}}',
        '{"i":1,"op":"shell.next.end","ok":{"exit":0}}',
        '{"lane":"engine#0/2","i":0,"op":"mail.receive","cancelled":true}',
        '{"lane":"engine#0/10","i":0,"op":"git.land","keys":{"reads":["r"],"writes":["w"]},"ok":null}',
      ].join('\n')}\n`,
    );
    const [header = '', first, ...more] = score.split('\n');
    expect(JSON.parse(header)).toEqual({
      format: 2,
      kind: 'score',
      case: 'two',
      witness: { mostOpen: 2, mostInFlight: 1, switches: 5 },
      main,
      files: { 'two__a.vcr': sha256(rest['two__a.vcr'] ?? ''), 'two__b.vcr': expect.any(String) },
    });
    expect(first).toBe('{"n":0,"lane":"a","i":0,"op":"clock.now"}');
    expect(more).toHaveLength(8);
  });

  it('are joined to the same recording', () => {
    const others = { 'sessions/x.jsonl': sha256('x') };
    const joined = read(files(twoLanes, { files: others, steps: ['a', 'b', 'quiet'] }), others);
    expect(joined.entries).toEqual(twoLanes.entries);
    expect(joined.witness).toEqual(twoLanes.witness);
    expect(joined.score.main).toEqual(main);
    expect([...joined.tapes.keys()]).toEqual(['a', 'b', 'quiet']);
    expect(joined.placeOf({ lane: 'a/engine#0', i: 1 })).toBe('cases/two/two__a.vcr:4');
    expect(joined.placeOf({ lane: 'b', i: 0 })).toBe('cases/two/two__b.vcr:2');
    expect(joined.placeOf({ lane: 'c', i: 0 })).toBeUndefined();
  });

  it('do not repeat lanes, keys and long values', () => {
    const reply = { text: 'It works now. '.repeat(20) };
    const keys = { writes: ['store'] };
    const recording = recordingOf([
      step('a', 'store.append', { keys, args: { output: reply }, ...ok(null) }),
      step('a', 'store.append', { keys, args: { seq: 2 }, ...ok(null) }),
      step('a', 'store.append', { args: { event: reply }, ...ok(reply) }),
      step('a', 'store.append', { keys, args: { same: 'as before' }, ...ok(null) }),
    ]);
    const given = files(recording);
    expect(given['two__a.vcr']?.split('\n').slice(1)).toEqual([
      `{"lane":"","i":0,"op":"store.append","keys":{"writes":["store"]},"args":{"output":${JSON.stringify(reply)}},"ok":null}`,
      '{"i":1,"op":"store.append","args":{"seq":2},"ok":null}',
      '{"i":2,"op":"store.append","keys":{},"args":{"event":{"same":":0/args/output"}},"ok":{"same":":0/args/output"}}',
      '{"i":3,"op":"store.append","keys":{"writes":["store"]},"args":{"same":[{"same":"as before"}]},"ok":null}',
      '',
    ]);
    expect(given['two.score']?.split('\n')[1]).toBe(
      '{"n":0,"lane":"a","i":0,"op":["store.append","store.append","store.append","store.append"]}',
    );
    expect(read(given).entries).toEqual(recording.entries);
  });

  it('keep the other tapes unchanged when one command is recorded again', () => {
    const again = recordingOf([
      step('b', 'clock.now', ok(7)),
      step('b', 'git.land', ok('done')),
      ...twoLanes.entries.filter(({ lane }) => lane !== 'b'),
    ]);
    const [before, after] = [files(), files(again)];
    expect(after['two__a.vcr']).toBe(before['two__a.vcr']);
    expect(after['two__b.vcr']).not.toBe(before['two__b.vcr']);
  });
});

const long = {
  text: 'a text that is too long to be written twice, '.repeat(5),
  path: { 'a/b~c': ['x', 'y'] },
};
const repeated = fc.constantFrom<unknown>(
  long,
  long.text,
  [long, { again: long.text }],
  { 'a/~b': long, same: long.text },
  { same: 'a:0/args' },
  { same: [{ same: long }] },
);
const json = fc
  .oneof(fc.jsonValue({ maxDepth: 2 }), repeated)
  .map(value => JSON.parse(JSON.stringify(value)) as unknown);
const outcome: fc.Arbitrary<EffectOutcome> = fc.oneof(
  json.map((value): EffectOutcome => ({ kind: 'ok', value })),
  fc.constant<EffectOutcome>({ kind: 'cancelled' }),
  fc
    .record(
      { code: fc.string(), message: fc.string(), hint: fc.string(), name: fc.string(), exitCode: fc.nat() },
      { requiredKeys: ['code', 'message'] },
    )
    .map((error): EffectOutcome => ({ kind: 'failed', error: { ...error } })),
);
const keyNames = fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 3 });
const anyEntry = fc
  .record(
    {
      lane: fc.constantFrom(
        'a',
        'a/0',
        'a/10',
        'a/9',
        'a/9a',
        'a/1a/0',
        'b',
        'b/engine#0',
        'b/engine#0/3',
        'c-2',
      ),
      op: fc.constantFrom('x.y', 'x.y.begin', 'x.y.end', 'é"\\', '__proto__'),
      keys: fc
        .record({ reads: keyNames, writes: keyNames }, { requiredKeys: ['writes'] })
        .map(keys => ({ ...keys })),
      args: json,
      outcome,
    },
    { requiredKeys: ['lane', 'op'] },
  )
  .map(entry => ({ ...entry }));
const recordings = fc.array(anyEntry, { maxLength: 20 }).map(recordingOf);

describe('splitting a recording and joining it again', () => {
  it('loses nothing', () => {
    fc.assert(
      fc.property(recordings, recording => {
        const { entries, witness } = read(files(recording));
        expect({ entries, witness }).toEqual(recording);
        expect(files({ entries, witness })).toEqual(files(recording));
      }),
      { numRuns: 500 },
    );
  });

  it('gives the same tapes for every interleaving of the lanes', () => {
    const byLane = ({ entries }: Recording) => [...new Set(entries.map(({ lane }) => lane))];
    fc.assert(
      fc.property(recordings, recording => {
        const oneAfterAnother = recordingOf(
          byLane(recording).flatMap(lane => recording.entries.filter(entry => entry.lane === lane)),
        );
        const [{ 'two.score': _, ...left }, { 'two.score': __, ...right }] = [
          files(recording),
          files(oneAfterAnother),
        ];
        expect(left).toEqual(right);
      }),
    );
  });
});

describe('fromCaseFiles', () => {
  const replace = (from: string, to: string) => (text: string) => text.replace(from, to);
  const dropLine = (line: number) => (text: string) =>
    text
      .split('\n')
      .filter((_, at) => at !== line - 1)
      .join('\n');

  it.each([
    [
      'an unknown field',
      changed('two__a.vcr', replace('"ok":5', '"ok":5,"took":3')),
      'cases/two/two__a.vcr:2: took: unknown field',
    ],
    [
      'a field of the wrong type',
      changed('two__a.vcr', replace('"writes":["w"]', '"writes":"w"')),
      'cases/two/two__a.vcr:6: keys: expected a map',
    ],
    [
      'two outcomes',
      changed('two__a.vcr', replace('"ok":5', '"ok":5,"cancelled":true')),
      'cases/two/two__a.vcr:2: ok and cancelled',
    ],
    [
      'a gap in a lane',
      changed('two__b.vcr', dropLine(3)),
      'cases/two/two__b.vcr:3: found entry 2 of lane "", expected entry 1',
    ],
    ['a gap in the order', changed('two.score', dropLine(4)), 'cases/two/two.score:4: n is 3, expected 2'],
    [
      'a gap in a lane of the score',
      changed('two.score', replace('"lane":"b","i":0', '"lane":"b","i":1')),
      'cases/two/two.score:3: found entry 1 of lane "b", expected entry 0',
    ],
    [
      'an unknown field of the score',
      changed('two.score', replace('"n":0', '"n":0,"t":1')),
      'cases/two/two.score:2: t: unknown field',
    ],
    [
      'a different op',
      changed('two.score', replace('"op":"git.land"', '"op":"git.push"')),
      'cases/two/two.score:5: the score has git.push here, but the tape has git.land (cases/two/two__a.vcr:6)',
    ],
    [
      'an entry that is on no tape',
      changed('two__b.vcr', dropLine(4)),
      'cases/two/two.score:9: no tape has entry 2 of lane "b" (git.commit)',
    ],
    [
      'an entry that is not on the score',
      changed('two.score', dropLine(9)),
      'cases/two/two__b.vcr:4: git.commit is missing from the score cases/two/two.score',
    ],
    [
      'a tape of another case',
      changed('two__b.vcr', replace('"case":"two"', '"case":"one"')),
      'cases/two/two__b.vcr:1: this is the tape of case "one", command "b"',
    ],
    [
      'a header without a field',
      changed('two.score', replace('"main":', '"mane":')),
      'cases/two/two.score:1: main: expected a map',
    ],
    ['invalid JSON', changed('two__b.vcr', replace('{"lane"', '{lane"')), 'cases/two/two__b.vcr:2: not JSON'],
    [
      'a tape that was edited by hand',
      changed('two__b.vcr', replace('"ok":6', '"ok":7')),
      'cases/two/two__b.vcr has changed since it was recorded',
    ],
    ['an empty tape', changed('two__b.vcr', () => ''), 'cases/two/two__b.vcr:1: the file is empty'],
  ])('refuses %s', (_, given, expected) => expect(problemOf(given)).toContain(`TAPE_INVALID: ${expected}`));

  it('refuses dangling and circular references', () => {
    const pointing = (to: string) =>
      changed('two__a.vcr', replace('"ok":{"exit":0}', `"ok":{"same":"${to}"}`));
    const dangling = 'TAPE_INVALID: cases/two/two__a.vcr:4: same: no earlier value at';
    for (const to of ['engine#0:0/args/no', 'engine#0:7/args', 'engine#0:1/ok', 'x', 'engine#0:0'])
      expect(problemOf(pointing(to))).toContain(`${dangling} "${to}"`);
  });

  it('refuses missing and orphaned files', () => {
    const { 'two__b.vcr': tape = '', ...rest } = files();
    expect(problemOf(rest)).toBe(
      'TAPE_INVALID: cases/two/two__b.vcr is missing\nhint: restore the file from git, or record the case again: reprise test two --record',
    );
    expect(problemOf({})).toContain('cases/two/two.score is missing');
    expect(problemOf({ ...rest, 'two__b.vcr': tape, 'two__c.vcr': tape })).toContain(
      'cases/two/two__c.vcr is not part of the recording',
    );
    const withSession = files(twoLanes, { files: { 'sessions/x.jsonl': sha256('x') } });
    expect(problemOf(withSession)).toBe('no problem');
    expect(problemOf(withSession, {})).toContain('cases/two/sessions/x.jsonl is missing');
    expect(problemOf(withSession, { 'sessions/x.jsonl': sha256('y') })).toContain('has changed');
    expect(problemOf(files(), { 'blobs/0': sha256('y') })).toContain(
      'cases/two/blobs/0 is not part of the recording',
    );
  });

  it('refuses another format version before it checks anything else', () => {
    const newer = (text: string) => text.replace('{"format":2', '{"new":[],"format":3');
    expect(problemOf(changed('two__a.vcr', newer))).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: format version: cases/two/two__a.vcr:1 is a tape with format 3, but this version of Reprise reads format 2
      hint: upgrade Reprise, or record it again: reprise test two --record"
    `);
    expect(problemOf(changed('two.score', newer))).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: format version: cases/two/two.score:1 is a score with format 3, but this version of Reprise reads format 2
      hint: upgrade Reprise, or record it again: reprise test two --record"
    `);
    expect(
      problemOf(changed('two__a.vcr', replace('"redaction":1', '"redaction":0'))),
    ).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: format version: cases/two/two__a.vcr:1 is a tape with redaction 0, but this version of Reprise reads redaction 1
      hint: record it again: reprise test two --record"
    `);
  });
});
