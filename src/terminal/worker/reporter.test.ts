import { expect, it } from 'vitest';
import type { NewEvent } from '../../core/events.ts';
import { historyOf, noon } from '../test-support.ts';
import { createPlainWorkersReporter } from './reporter.ts';

const landed = (more: { readonly from?: string }): NewEvent => ({
  type: 'landing.ended',
  step: 'land',
  attempt: 1,
  data: {
    outcome: 'landed',
    onto: 'main',
    branch: 'b',
    commit: '3f2c1ab0d2'.repeat(4),
    commits: 2,
    subjects: ['Begin', 'Fix the parser'],
    ...more,
  },
});

it('shows how work landed, as far as the history records it', () => {
  let text = '';
  const reporter = createPlainWorkersReporter({
    write: more => {
      text += more;
    },
    color: false,
    branch: 'main',
    now: () => noon,
  });
  reporter.report(0, { kind: 'enlisted', name: 'ann' });
  reporter.report(1, { kind: 'enlisted', name: '日本-1' });
  reporter.observe(0, { kind: 'events', events: historyOf([[0, landed({ from: 'ab'.repeat(20) })]]) });
  reporter.observe(1, { kind: 'events', events: historyOf([[0, landed({})]]) });
  expect(text.replace(/\d\d:\d\d:\d\d/g, '<time>')).toMatchInlineSnapshot(`
    "<time> ann  started on branch main
    <time> 日本-1  started on branch main
    <time> ann     landed 3f2c1ab0d2 Fix the parser on main (2 commits rebased onto ababababab, fast-forward)
    <time> 日本-1  landed 3f2c1ab0d2 Fix the parser on main (2 commits, fast-forward)
    "
  `);
});
