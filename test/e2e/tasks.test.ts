import { describe, expect, it } from 'vitest';
import { stateOf } from '../support/state.ts';
import { agentProject } from './agent-project.ts';
import { parseLines, until } from './run-inline.ts';

const files = {
  'issues/fix-readme.md': '---\npriority: P1\n---\n# Fix the readme\n\nThe install command is outdated.\n',
  'issues/add-tests.md': '---\nneeds: [fix-readme]\n---\n# Add tests\n',
  'issues/odd.md': '---\nprio: P1\n---\n# Odd\n',
};
const patient = `
echo "$REPRISE_TASK" >> "$MARKS"
until [ -e "$MARKS.go" ]; do sleep 0.05; done
echo done > "$REPRISE_TASK.txt"
echo "<next>land</next>"`;

const project = (implement = patient) =>
  agentProject({ agents: { implement }, files, config: 'workers: { agent: implement }' });

interface Row {
  readonly id: string;
  readonly standing: string;
  readonly claim: { readonly by: string; readonly run: string | null; readonly token: number } | null;
}

describe('reprise tasks', () => {
  it('lists all tasks, invalid task files and uncommitted ones', async () => {
    const at = project();
    at.write({ 'issues/later.md': '# Later\n' });
    const { code, stdout, stderr } = await at.run(['tasks']);
    expect(code).toBe(0);
    expect(stdout).toMatchInlineSnapshot(`
      "◔  add-tests   P2  waiting for \`fix-readme\`     Add tests
      ·  fix-readme  P1  ready                        Fix the readme
      ✗  odd             invalid: unknown key \`prio\`
      "
    `);
    expect(stderr).toMatchInlineSnapshot(`
      "issues/odd.md:2:1: unknown key \`prio\`
         2 | prio: P1
           | ^^^^
        hint: known keys: title, priority, state, needs, agent
      issues/later.md is not on main yet
        hint: commit it: git add issues/later.md && git commit
      "
    `);
    expect((await at.run(['tasks', 'list'])).stdout).toBe(stdout);
    const rows = parseLines<Row>((await at.run(['tasks', '--json'])).stdout);
    expect(rows.map(({ id, standing, claim }) => [id, standing, claim])).toEqual([
      ['add-tests', 'waiting', null],
      ['fix-readme', 'ready', null],
      ['odd', 'invalid', null],
    ]);
    expect(at.has(`${stateOf(at.root)}/reprise.db`)).toBe(false);
  });

  it('says how to add a task if there are none', async () => {
    const at = agentProject({ agents: { implement: patient } });
    const { code, stdout, stderr } = await at.run(['tasks']);
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: '',
      stderr: 'no tasks on main; write one and commit it: issues/<name>.md\n',
    });
  });

  it('shows one task, by its id or by its file', async () => {
    const at = project();
    const { code, stdout } = await at.run(['tasks', 'show', 'issues/fix-readme.md']);
    expect(code).toBe(0);
    expect(stdout).toMatchInlineSnapshot(`
      "fix-readme: Fix the readme
        status    ready
        agent     implement
        priority  P1
        state     ready
        file      issues/fix-readme.md on main

      # Fix the readme

      The install command is outdated.
      "
    `);
    const odd = await at.run(['tasks', 'show', 'odd', '--json']);
    expect(JSON.parse(odd.stdout)).toMatchObject({ id: 'odd', standing: 'invalid', body: null });
  });

  it.each([
    [['show', 'fix-readm'], 'there is no task fix-readm on main', 'did you mean fix-readme?'],
    [['show', 'quite-another'], 'there is no task quite-another on main', 'list all tasks: reprise tasks'],
    [['claim', 'later'], 'issues/later.md is not on main yet', 'git add issues/later.md && git commit'],
    [['claim', 'odd'], 'odd cannot be claimed: invalid', 'reprise tasks show odd'],
    [
      ['clam', 'fix-readme'],
      'unknown action clam; expected list, show, claim or release',
      'reprise tasks claim fix-readme',
    ],
    [['finish', 'fix-readme'], 'unknown action finish', 'reprise tasks --help'],
    [['fix-readme'], 'unknown action fix-readme', 'reprise tasks show fix-readme'],
    [['release'], '`tasks release` needs a task name', 'reprise tasks release <name>'],
    [['list', 'fix-readme'], '`tasks list` takes no task name', 'reprise tasks show fix-readme'],
    [['claim', 'fix-readme', '--by', ' '], '--by needs a name', ''],
  ])('refuses %j and says what to type instead', async (args, message, hint) => {
    const at = project();
    at.write({ 'issues/later.md': '# Later\n' });
    const { code, stderr } = await at.run(['tasks', ...args]);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).toContain(hint);
    expect(at.has(`${stateOf(at.root)}/reprise.db`)).toBe(false);
  });

  it('claims a task for a person, so that no worker takes it, and releases it again', async () => {
    const at = project();
    at.tell('go', '');
    expect(await at.run(['tasks', 'claim', 'fix-readme'])).toMatchObject({
      code: 0,
      stderr:
        'fix-readme is claimed by ana; no worker will take it. To release it: reprise tasks release fix-readme\n',
    });
    expect((await at.run(['tasks', 'claim', 'fix-readme'])).stderr).toContain(
      'fix-readme is already claimed by ana',
    );
    const other = await at.run(['tasks', 'claim', 'fix-readme', '--by', 'bob']);
    expect(other.code).toBe(1);
    expect(at.stable(other.stderr)).toMatchInlineSnapshot(`
      "error[TASK_HELD]: fix-readme has been claimed by ana since <at>
        hint: to release it: reprise tasks release fix-readme
      "
    `);
    const idle = await at.cli(['worker', '--once']);
    expect(idle.stderr).toContain('no task is ready: 1 held, 1 waiting, 1 invalid');
    expect((await at.run(['tasks', 'release', 'fix-readme'])).stderr).toMatchInlineSnapshot(`
      "it was claimed by ana
      released fix-readme: a worker can take it now, with agent implement
      "
    `);
    expect((await at.run(['tasks', 'release', 'fix-readme'])).stderr).toContain('fix-readme is not claimed');
    expect((await at.cli(['worker', '--once'])).code).toBe(0);
    expect(at.git('log', '-1', '--format=%s', 'main')).toBe('Fix the readme');
  });

  it('releases the task of a running worker, which then cannot land it', async () => {
    const at = project();
    const worker = at.begin(['worker', '--once']);
    await until(() => at.marks().length > 0);
    const held = await at.run(['tasks', 'claim', 'fix-readme']);
    expect(held.code).toBe(1);
    expect(held.stderr).toMatch(
      /error\[TASK_HELD\]: fix-readme has been claimed by worker-1 since .*, in run /,
    );
    const { code, stderr } = await at.run(['tasks', 'release', 'fix-readme']);
    expect(code).toBe(0);
    expect(at.stable(stderr)).toMatchInlineSnapshot(`
      "worker-1 is still working on fix-readme, but can no longer land it
      to stop it now: reprise cancel <run>
      released fix-readme: a worker can take it now, with agent implement
      "
    `);
    expect((await at.run(['tasks', 'claim', 'fix-readme', '--by', 'bob'])).code).toBe(0);
    const before = at.git('rev-parse', 'main');
    at.tell('go', '');
    expect((await worker.ended).code).not.toBe(0);
    expect(at.git('rev-parse', 'main')).toBe(before);
    const [row] = parseLines<Row>((await at.run(['tasks', '--json'])).stdout).filter(
      ({ id }) => id === 'fix-readme',
    );
    expect(row).toMatchObject({ standing: 'held', claim: { by: 'bob', run: null, token: 2 } });
  });

  it('releases a failed task, so that it is retried', async () => {
    const at = project('echo half > half.txt; echo "<next>give-up: it is too hard</next>"');
    expect((await at.cli(['worker', '--once'])).code).toBe(1);
    expect((await at.run(['tasks'])).stdout).toContain('failed on reprise/parked/fix-readme');
    expect((await at.run(['tasks', 'release', 'fix-readme'])).stderr).toContain('a worker can take it now');
    expect((await at.run(['tasks'])).stdout).toMatch(/fix-readme +P1 +ready/);
  });

  it('says how to redo a landed task', async () => {
    const at = project();
    at.tell('go', '');
    expect((await at.cli(['worker', '--once'])).code).toBe(0);
    expect((await at.run(['tasks', 'release', 'fix-readme'])).stderr).toBe(
      'released fix-readme: but its file has `state: done`; to redo it, set `state: ready` in issues/fix-readme.md and commit that\n',
    );
  });
});
