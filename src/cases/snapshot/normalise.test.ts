import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { normaliseSnapshot } from './normalise.ts';

const sha = '3063c5a48ad1b2c3d4e5f60718293a4b5c6d7e8f';
const lettersOnly = 'abcdefabcdefabcdefabcdefabcdefabcdefabcd';

describe('normalizing replaces values that differ between recordings', () => {
  it('in the log of a run', () => {
    const log = [
      '03:36:38 fix        run xkkv978qrf started: 5 steps',
      '03:36:38 reproduce  failed (attempt 1 of 3), again in 500ms: exited with code 1',
      '03:36:40 fix:0      saved 1 file, +5 -1 on reprise/fix/xkkv978qrf/fix/worker_0',
      '03:36:40 fix:0      ok 1.0s, >= $0.0042',
      '03:36:41 fix        note: waiting for process 4711 to finish its landing',
      '03:36:46 land       landed 1 commit on main (c07b3f055d)',
      '03:36:46 land_docs  landed 1 commit on main (8c24a0c0fe)',
      '03:38:52 fix        completed in 2m 05s',
      '  agents: $0.42, 120.3k tokens',
      'next: reprise show xkkv978qrf     the run and its output',
      'c07b3f0 fix:2: The greeting is fixed.',
      'process 4711 on build-7.local resumes it',
    ];
    expect(normaliseSnapshot(log.join('\n'))).toMatchInlineSnapshot(`
      "<TIME> fix        run <RUN:1> started: 5 steps
      <TIME> reproduce  failed (attempt 1 of 3), again in <DURATION>: exited with code 1
      <TIME> fix:0      saved 1 file, +5 -1 on reprise/fix/<RUN:1>/fix/worker_0
      <TIME> fix:0      ok <DURATION>, >= <COST>
      <TIME> fix        note: waiting for process <PID> to finish its landing
      <TIME> land       landed 1 commit on main (<SHA:1>)
      <TIME> land_docs  landed 1 commit on main (<SHA:2>)
      <TIME> fix        completed in <DURATION>
        agents: <COST>, <TOKENS> tokens
      next: reprise show <RUN:1>     the run and its output
      <SHA:1> fix:2: The greeting is fixed.
      process <PID> on <HOST> resumes it"
    `);
  });

  it('in JSON', () => {
    const json = JSON.stringify({
      runId: 'k7x2bcd3fg',
      at: '2026-01-31T12:01:03.250Z',
      epoch: 1763264198000,
      durationMs: 1234,
      costUsd: 0.0123,
      inputTokens: 4200,
      usage: '{"total_cost_usd":1.5,"output_tokens":17}',
      pid: 4711,
      port: 3000,
      session: '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
      commit: sha,
      attempts: 3,
      cost: null,
    });
    expect(normaliseSnapshot(json).replaceAll(',"', ',\n"')).toMatchInlineSnapshot(`
      "{"runId":"<RUN:1>",
      "at":"<TIME>",
      "epoch":<TIME>,
      "durationMs":<DURATION>,
      "costUsd":<COST>,
      "inputTokens":<TOKENS>,
      "usage":"{\\"total_cost_usd\\":<COST>,\\"output_tokens\\":<TOKENS>}",
      "pid":<PID>,
      "port":<PORT:1>,
      "session":"<UUID:1>",
      "commit":"<SHA:1>",
      "attempts":3,
      "cost":null}"
    `);
  });

  it.each([
    ['at 2026-01-31 12:01:03.250', 'at <TIME>'],
    ['Date:   Mon Nov 16 03:36:16 2026 +0000', 'Date:   <TIME>'],
    ['at 3:05 PM', 'at <TIME>'],
    ['2026-01-31  k', '<TIME>  k'],
    ['took 1h 02m, then 0m1.234s and 12 seconds', 'took <DURATION>, then <DURATION> and <DURATION>'],
    ['(3 ms) [1h30m]', '(<DURATION>) [<DURATION>]'],
    ['listening on http://localhost:41234/', 'listening on http://localhost:<PORT:1>/'],
    ['PORT=3000 REPRISE_PORT=3001 port 3000', 'PORT=<PORT:1> REPRISE_PORT=<PORT:2> port <PORT:1>'],
    ['could not stop process 7, 12', 'could not stop process <PID>'],
    ['pid: 12', 'pid: <PID>'],
    ['cd /tmp/reprise-demo-nLJPAL/a && ls /tmp/x.1.', 'cd <PATH:1>/a && ls <PATH:2>.'],
    ['/home/ann/.cache and /Users/ann.b/x', '<PATH:1>/.cache and <PATH:2>/x'],
    ['"output":"\\n/tmp/q/a"', '"output":"\\n<PATH:1>/a"'],
  ])('in %j', (text, normalised) => {
    expect(normaliseSnapshot(text)).toBe(normalised);
  });

  it('by the longest known path, at a boundary', () => {
    const paths = [
      { name: 'home', path: '/w/h' },
      { name: 'repo', path: '/w/h/repo/' },
    ];
    expect(
      normaliseSnapshot('/w/h/repo/a /w/h/repo2 /w/h. /private/w/h/repo "/w/hat" x/w/h', { paths }),
    ).toBe('<PATH:repo>/a <PATH:home>/repo2 <PATH:home>. <PATH:repo> "/w/hat" x/w/h');
  });

  it('by the same placeholder for a full and an abbreviated SHA, in any order', () => {
    expect(normaliseSnapshot(`${sha.slice(0, 7)} ${sha.slice(0, 10)} ${sha} 0a1b2c3`)).toBe(
      '<SHA:1> <SHA:1> <SHA:1> <SHA:2>',
    );
    expect(normaliseSnapshot(`at ${lettersOnly.slice(0, 7)}`, { shas: [lettersOnly] })).toBe('at <SHA:1>');
  });

  it('by known values that match no pattern', () => {
    const known = { runIds: ['fixed-run'], ports: [4000], hosts: ['box'] };
    expect(normaliseSnapshot('fixed-run on box: 4000; a4000', known)).toBe(
      '<RUN:1> on <HOST>: <PORT:1>; a4000',
    );
  });
});

describe('normalizing keeps meaningful values', () => {
  it.each([
    'deadbeef was a facade, defaced and effaced',
    'issue 1234567 of 20261116',
    'a1b2c3 has six digits',
    'src/a.ts:12:34 and 10:20  error',
    '3 of 3 succeeded, attempt 2, exit 1, +5 -1, 50 %',
    'echo $1 and $HOME',
    'v1.5s 3d 1990s a-5s',
    'run the tests, run everything',
    '/usr/bin/env node /etc/hosts',
    'ended 2 processes',
    'cost unknown',
  ])('in %s', text => {
    expect(normaliseSnapshot(text)).toBe(text);
  });
});

describe('tables', () => {
  const table = (first: string, second: string, third: string) => {
    const width = Math.max(first.length, second.length);
    const cost = Math.max(third.length, '$0.00'.length);
    return [
      `  ✓  reproduce  ${first.padStart(width)}  ${''.padEnd(cost)}  2 attempts`,
      `  ✓  fix        ${second.padStart(width)}  ${third.padStart(cost)}              3 of 3 succeeded`,
      `  –  land       ${''.padEnd(width)}  ${''.padEnd(cost)}  skipped: fix failed`,
      `  ✓  last       ${second.padStart(width)}`,
      `  5 steps, ${first} (${second} of work)`,
    ].join('\n');
  };

  it('do not depend on durations', () => {
    const normalised = normaliseSnapshot(table('826ms', '6.1s', '$0.00'));
    expect(normalised).toMatchInlineSnapshot(`
      "  ✓  reproduce  <DURATION>  2 attempts
        ✓  fix        <DURATION>  <COST>  3 of 3 succeeded
        –  land       skipped: fix failed
        ✓  last       <DURATION>
        5 steps, <DURATION> (<DURATION> of work)"
    `);
    expect(normaliseSnapshot(table('1h 02m', '59.9s', '>= $12.34').replaceAll('>= ', ''))).toBe(normalised);
  });

  it('do not depend on ages', () => {
    const row = (id: string, age: string, took: string) => `✓  ${id}  fix  completed  ${age}  ${took}`;
    const young = [row('k7x2bcd3fg', 'just now', 'took 5ms'), row('k7x2bcd3fh', '42s ago ', 'took 1.0s')];
    const old = [row('qqqq2222qq', '4 days ago', 'took 10.0s'), row('qqqq2222qz', '1 day ago ', 'took 3ms')];
    const known = { runIds: ['k7x2bcd3fg', 'k7x2bcd3fh', 'qqqq2222qq', 'qqqq2222qz'] };
    const normalised = normaliseSnapshot(young.join('\n'), known);
    expect(normalised).toMatchInlineSnapshot(`
      "✓  <RUN:1>  fix  completed  <DURATION> ago  took <DURATION>
      ✓  <RUN:2>  fix  completed  <DURATION> ago  took <DURATION>"
    `);
    expect(normaliseSnapshot(old.join('\n'), known)).toBe(normalised);
  });
});

describe('for any text, normalizing', () => {
  const pieces = fc.constantFrom(
    ...['5s', '1.2s', '2m 05s', '1h 02m', '12 seconds', '340ms', 'just now', '4 days ago', '12:01:03'],
    ...['2026-01-31', '2026-01-31T12:01:03.250Z', '$0.12', '>= $0.12', '950 tokens', '1763264198000'],
    ...[sha, sha.slice(0, 7), sha.slice(0, 10), lettersOnly, lettersOnly.slice(0, 8), '1234567', 'deadbeef'],
    ...['3f2504e0-4f89-41d3-9a0c-0305e82c3301', 'run k7x2bcd3fg', 'k7x2bcd3fg', 'reprise/fix/k7x2bcd3fg/'],
    ...['/tmp/abc/x', '/w/repo', '/w/repo2', '/home/ann', 'localhost:', '3000', 'port ', 'process ', 'pid='],
    ...['"costUsd":', '0.5', '"durationMs":', '12', ' on box', '<SHA:1>', '<PORT:2>', '<TIME>', '<DURATION>'],
    ...[
      ' ',
      '  ',
      '    ',
      '\n',
      '\n\n',
      ':',
      '.',
      '-',
      '_',
      '/',
      '<',
      '>',
      '"',
      '\\n',
      'x',
      'took ',
      '$',
      '(',
      ')',
    ],
  );
  const texts = fc.array(pieces, { maxLength: 24 }).map(parts => parts.join(''));
  const known = {
    paths: [{ name: 'repo', path: '/w/repo' }],
    runIds: ['k7x2bcd3fg'],
    shas: [lettersOnly],
    ports: [3000],
    hosts: ['box'],
  };

  it('is idempotent', () => {
    fc.assert(
      fc.property(texts, fc.boolean(), (text, knows) => {
        const once = normaliseSnapshot(text, knows ? known : {});
        expect(normaliseSnapshot(once, knows ? known : {})).toBe(once);
      }),
      { numRuns: 3000 },
    );
  });

  it('does not depend on the values of SHAs and run ids', () => {
    const hex = fc.stringMatching(/^[0-9a-f]{40}$/);
    fc.assert(
      fc.property(fc.uniqueArray(hex, { minLength: 2, maxLength: 2 }), ([first = '', second = '']) => {
        fc.pre(first.slice(0, 7) !== second.slice(0, 7));
        const text = `${first.slice(0, 10)} then ${second} (${first.slice(0, 7)}), ${second.slice(0, 12)}\n`;
        expect(normaliseSnapshot(text, { shas: [first, second] })).toBe(
          '<SHA:1> then <SHA:2> (<SHA:1>), <SHA:2>\n',
        );
      }),
    );
  });
});
