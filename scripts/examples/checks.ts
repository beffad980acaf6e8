import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { Commands, Ended } from './commands.ts';

/** Throws with the output of the command unless it ended with the expected exit code. */
function expectExit({ code, errors, ...rest }: Ended, expected: number) {
  assert.equal(code, expected, `exit code ${code} instead of ${expected}:\n${errors}`);
  return rest;
}

/** Check of each example. */
export const checks: Readonly<Record<string, (commands: Commands) => Promise<void>>> = {
  async 'best-of-three'({ json, reprise, git, path }) {
    const { result } = expectExit(await json('run', 'fix.yaml'), 0);
    assert.deepEqual(result.output, { selected: 2, landed: 'landed' });
    assert.match(readFileSync(path('slug.mjs'), 'utf8'), /replaceAll\(' ', '-'\)/);
    assert.equal(
      git('log', '--format=%s'),
      'fix:2: Fixed the slugs of titles with more than two words.\nBegin',
    );
    assert.equal(git('status', '--porcelain'), '');

    const diff = expectExit(await reprise('diff', result.runId, 'fix:0', '--stat'), 0);
    assert.match(diff.output, /slug\.mjs/);
    const replayed = expectExit(await json('replay', result.runId), 0);
    assert.deepEqual(replayed.result, result);
    expectExit(await reprise('gc'), 0);
    assert.equal(git('worktree', 'list').split('\n').length, 1, 'all workspaces are removed');
    const branches = git('branch', '--format=%(refname:short)').split('\n');
    assert.equal(
      branches.filter(branch => /worker_[01]$/.test(branch)).length,
      2,
      'branches with work that has not landed are kept',
    );
    assert.equal(branches.length, 3, 'the branch with the work that landed is removed');
  },

  async 'explored-code'({ node }) {
    const { output } = expectExit(await node('seats.mjs'), 0);
    assert.match(output, /^invariant: 2 tickets for 1 seat\n\n +ann +bob\n/);
    assert.match(output, /\nno failure: every order was played\n/);
  },

  async 'matrix-agents'({ json, reprise, git }) {
    const { result } = expectExit(await json('run', 'review.yaml'), 0);
    const { page, ...numbers } = result.output ?? {};
    assert.deepEqual(numbers, { reviewed: 3, open: 1 });
    assert.match(
      readFileSync(String(page), 'utf8'),
      /- src\/area\.mjs: functions 2, open 0\n- src\/greet\.mjs: .*open 1\n/,
    );
    const { output } = expectExit(await reprise('show', result.runId), 0);
    assert.match(output, /review:2 +review +\S+\/review\.md/);
    expectExit(await reprise('gc'), 0);
    assert.equal(git('branch', '--format=%(refname:short)'), 'main', 'branches without changes are removed');
  },

  async 'tested-workflow'({ json, reprise, git, path }) {
    const { output } = expectExit(await reprise('test'), 0);
    assert.match(output, /✓ fix-and-land .*\n\n1 passed/);
    assert.equal(git('status', '--porcelain'), '', 'a replay writes nothing into the project');

    const workflow = path('.reprise/workflows/prices.yaml');
    const before = readFileSync(workflow, 'utf8');
    writeFileSync(workflow, before.replace('change nothing else', 'sort them'));
    assert.match(expectExit(await reprise('test'), 5).output, /stale: the prompt of writer for run.complete/);
    writeFileSync(workflow, before.replace(/ +checks: .*\n/, ''));
    assert.match(expectExit(await reprise('test'), 5).output, /diverged: .* shell.run.begin was recorded/);
    writeFileSync(workflow, before);

    const { result } = expectExit(await json('run', 'prices'), 0);
    assert.deepEqual(result.output, { landed: 'landed' });
    assert.match(readFileSync(path('menu.md'), 'utf8'), /- Soup, 4\.50\n/);
  },

  async order({ json, reprise }) {
    const { result } = expectExit(await json('run', 'order.mjs', '--input', 'order=A-17'), 0);
    assert.deepEqual(result.output, {
      charge: { charged: 24, attempt: 2 },
      deliver: { pack: { box: 'small' }, label: { text: 'order A-17' } },
    });
    const replayed = expectExit(await json('replay', result.runId), 0);
    assert.deepEqual(replayed.result, result);
    expectExit(await reprise('run', 'order.mjs'), 2);
  },

  async release({ json, reprise, path }) {
    const { result: asked } = expectExit(
      await json('run', 'release.yaml', '--input', 'target=production'),
      3,
    );
    assert.deepEqual(
      asked.waiting?.map(({ message }) => message),
      ['Publish v1.4.0 to production?'],
    );
    expectExit(await reprise('approve', asked.runId, 'ok', '--comment', 'looks good'), 0);
    const { result } = expectExit(await json('resume', asked.runId), 0);
    assert.deepEqual(result.output, {
      tag: 'v1.4.0',
      address: 'production.example.com/v1.4.0',
      lint: 'failure',
    });
    assert.ok(existsSync(path('published/app.sh')));

    const { result: again } = expectExit(await json('run', 'release.yaml'), 3);
    expectExit(await reprise('approve', again.runId, '--reject'), 0);
    const { result: rejected } = expectExit(await json('resume', again.runId), 1);
    assert.equal(rejected.error?.code, 'APPROVAL_REJECTED');
    assert.ok(!existsSync(path('build')), 'the clean-up runs although the approval was rejected');
  },

  async 'matrix-by-child'({ json }) {
    const { result } = expectExit(await json('run', 'matrix.yaml'), 0);
    assert.deepEqual(result.output, {
      reports: 'small has 10 lines, medium has 100 lines, large has 1000 lines',
    });
  },

  async signals({ json, begin, reprise }) {
    const late = expectExit(await json('run', 'payment.mjs', '--input', 'patience=50ms'), 0);
    assert.deepEqual(late.result.output, { ship: null, remind: 'reminded' });

    const running = begin('run', 'payment.mjs');
    const { runId } = await running.until(
      ({ type, data }) => type === 'step.suspended' && data['on'] === 'signal',
    );
    expectExit(await reprise('signal', runId, 'payment', '{ "amount": 120 }'), 0);
    const paid = expectExit(await running.end(), 0);
    assert.deepEqual(paid.result.output, { ship: 'shipped', remind: null });
  },

  async embed({ node }) {
    const { output } = expectExit(await node('program.mjs'), 0);
    assert.deepEqual(JSON.parse(output), { send: 'sent (ana): We are open again on Monday.' });
  },
};
