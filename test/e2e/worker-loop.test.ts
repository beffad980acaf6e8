import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { describe, expect, it, vi } from 'vitest';
import { isSameProcess, processStart } from '../../src/process/table.ts';
import { stateOf } from '../support/state.ts';
import { type RunningCli, until } from './run-inline.ts';
import { nothingLeft, type WorkerProject, workerProject } from './worker-project.ts';

const claimOf = (project: WorkerProject, task: string) =>
  project.inStore(async store => (await store.claims.list()).find(claim => claim.task === task));

const processOf = (pid: number) => ({ pid, processStart: processStart(pid) ?? 'gone' });

describe('two workers', () => {
  it('take one task each, land both without merge commits, and exit when nothing is left', async () => {
    const project = workerProject({
      agents: {
        // Neither session ends before the other has started.
        implement: `
          echo $REPRISE_TASK >> $MARKS
          until [ "$(sort -u $MARKS | wc -l)" = 2 ]; do sleep 0.02; done
          echo $REPRISE_TASK > $REPRISE_TASK.txt
          echo "<next>land</next>"`,
      },
      tasks: { one: '# Write one.txt\n', two: '# Write two.txt\n' },
    });
    const ends = await Promise.all(
      [project.worker(['--until-idle', '--name', 'ana']), project.worker(['--until-idle'])].map(
        worker => worker.ended,
      ),
    );
    expect(
      ends.map(({ code }) => code),
      ends.map(({ stderr }) => stderr).join('\n'),
    ).toEqual([0, 0]);
    expect(ends.map(({ stderr }) => [...stderr.matchAll(/picked up (\w+),/g)].length)).toEqual([1, 1]);
    expect(project.landed().toSorted()).toEqual(['one', 'two']);
    expect(project.git('rev-list', '--merges', 'main')).toBe('');
    expect(project.read('one.txt') + project.read('two.txt')).toBe('one\ntwo\n');
    expect(project.read('issues/one.md')).toContain('state: done');
    expect(await project.leftovers()).toEqual(nothingLeft);
    expect(await project.inStore(store => store.workers.list())).toEqual([]);
  });

  it('report the takeover of an abandoned run only once, by the worker that gets it', async () => {
    const project = workerProject({
      agents: {
        implement: `
          if [ ! -s $MARKS ]; then echo started >> $MARKS; sleep 60; fi
          echo one > one.txt
          echo "<next>land</next>"`,
      },
      tasks: { one: '# Write one.txt\n' },
    });
    const first = project.worker([]);
    await until(() => project.marks().length > 0);
    first.kill('SIGKILL');
    await first.ended;
    const others = await project.worker(['--until-idle', '--workers', '4']).ended;
    expect(others.code, others.stderr).toBe(0);
    expect(others.stderr.split('taking over abandoned run').length - 1, others.stderr).toBe(1);
    expect(others.stderr).not.toContain('to another worker');
    expect(project.landed()).toEqual(['one']);
  });

  it('cannot have the same name', async () => {
    const project = workerProject({ agents: { implement: '' } });
    const first = project.worker(['--name', 'ana']);
    await until(() => first.stderr.includes('sleeping'));
    const second = await project.worker(['--name', 'ana']).ended;
    expect(second.code).toBe(2);
    expect(second.stderr).toMatchInlineSnapshot(`
      "error[USAGE]: a worker named ana is already running
        hint: choose another name, or inspect the running worker: reprise status
      "
    `);
  });
});

/** Speaks the protocol of Claude Code. Hangs in a new session, and completes a resumed one. */
const resumable = `
import { spawn } from 'node:child_process';
import { appendFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
const after = name => process.argv[process.argv.indexOf(name) + 1];
const isResumed = process.argv.includes('--resume');
const session_id = isResumed ? after('--resume') : after('--session-id');
const print = message => process.stdout.write(JSON.stringify({ ...message, session_id }) + '\\n');
const mark = words => appendFileSync(process.env.MARKS, words.join(' ') + '\\n');
createInterface({ input: process.stdin })
  .on('line', line => {
    const message = JSON.parse(line);
    if (message.request?.subtype === 'initialize') {
      print({ type: 'control_response', response: { subtype: 'success', request_id: message.request_id, response: {} } });
    } else if (message.type === 'user') {
      print({ type: 'system', subtype: 'init', model: 'none', cwd: process.cwd() });
      if (isResumed) {
        const [, key] = /<next key=\\W+(\\w+)/.exec(line);
        mark(['resumed', session_id, process.cwd()]);
        writeFileSync('end.txt', 'end');
        print({ type: 'result', subtype: 'success', is_error: false, usage: {}, total_cost_usd: 0.1, result: 'Done.\\n<next key="' + key + '">land</next>' });
      } else {
        writeFileSync('begin.txt', 'begin');
        const child = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' });
        print({ type: 'assistant', message: { content: [{ type: 'text', text: 'here' }] } });
        child.on('spawn', () => mark(['started', session_id, process.cwd(), process.pid, child.pid]));
      }
    }
  })
  .on('close', () => {});
`;

describe('kill -9 of a worker', () => {
  it('hands its claim, worktree and session to the next worker', async () => {
    const project = workerProject({
      config: '  implement: { kind: claude, command: [node, agents/resumable.mjs] }',
      files: { 'agents/resumable.mjs': resumable },
      tasks: { one: '# Add a file\n' },
    });
    const first = project.worker();
    await until(() => project.marks().length === 1);
    const [, session, folder, ...pids] = (project.marks()[0] ?? '').split(' ');
    const orphans = pids.map(pid => processOf(Number(pid)));
    expect(orphans.map(isSameProcess)).toEqual([true, true]);
    const before = await claimOf(project, 'one');
    first.kill('SIGKILL');
    await first.ended;
    const second = await project.worker(['--until-idle']).ended;
    expect(second.code, second.stderr).toBe(0);
    expect(second.stderr).toContain(`taking over abandoned run ${before?.runId}`);
    expect(orphans.map(isSameProcess)).toEqual([false, false]);
    expect(project.marks().slice(1)).toEqual([`resumed ${session} ${folder}`]);
    expect(project.landed()).toEqual(['one']);
    expect([project.read('begin.txt'), project.read('end.txt')]).toEqual(['begin', 'end']);
    const after = await claimOf(project, 'one');
    expect(after).toMatchObject({ state: 'landed', token: before?.token, runId: before?.runId });
    expect(await project.leftovers()).toEqual(nothingLeft);
  });

  it('wakes a sleeping worker', async () => {
    const project = workerProject({
      agents: {
        implement: `echo $$ >> $MARKS; [ -e $MARKS.gate ] || exec sleep 1000; echo a > new.txt; echo "<next>land</next>"`,
      },
      tasks: { one: '# Add a file\n' },
    });
    const first = project.worker();
    await until(() => project.marks().length === 1);
    const second = project.worker(['--until-idle']);
    await until(() => second.stderr.includes('sleeping'));
    project.tell('gate', '');
    first.kill('SIGKILL');
    const { code, stderr } = await second.ended;
    expect(code, stderr).toBe(0);
    expect(stderr).toContain('woke up: a worker abandoned its task');
    expect(project.landed()).toEqual(['one']);
  });
});

/** Bounds the retries while another process is writing to the store. */
const untilStoreIsFree = { timeout: 50_000 };

function change(project: WorkerProject, statement: string): void {
  const db = new DatabaseSync(join(project.root, stateOf(project.root), 'reprise.db'));
  try {
    db.exec(statement);
  } finally {
    db.close();
  }
}

/** Stops a worker and lets its lease expire, but never while the worker is writing to the store. */
const freeze = (project: WorkerProject, worker: RunningCli): Promise<void> =>
  vi.waitFor(() => {
    worker.kill('SIGSTOP');
    try {
      change(project, "UPDATE runs SET expires_at = '2000-01-01T00:00:00.000Z' WHERE pid IS NOT NULL");
    } catch (busy) {
      worker.kill('SIGCONT');
      throw busy;
    }
  }, untilStoreIsFree);

const gated = (gate: string) => `echo ${gate} >> $MARKS; until [ -e $MARKS.${gate} ]; do sleep 0.02; done`;

describe('a stopped worker', () => {
  it.each([
    ['session', { agent: `${gated('gate')}; echo a > new.txt; echo "<next>land</next>"`, config: '' }],
    [
      'verification',
      {
        agent: 'echo a > new.txt; echo "<next>land</next>"',
        config: `workers: { verify: "${gated('gate')}" }`,
      },
    ],
  ])('keeps the run that it stopped in during the %s, and lands it', async (_, { agent, config }) => {
    const project = workerProject({
      agents: { implement: agent },
      tasks: { one: '# Add a file\n' },
      ...(config && { config }),
    });
    const stopped = project.worker(['--until-idle', '--name', 'stopped']);
    await until(() => project.marks().length === 1);
    await freeze(project, stopped);
    const other = project.worker(['--until-idle', '--name', 'other']);
    await until(() => other.stderr.includes('no task is ready'));
    project.tell('gate', '');
    stopped.kill('SIGCONT');
    const ends = await Promise.all([stopped.ended, other.ended]);
    expect(
      ends.map(({ code }) => code),
      ends.map(({ stderr }) => stderr).join('\n'),
    ).toEqual([0, 0]);
    expect(stopped.stderr).toMatch(/ landed [0-9a-f]{10}/);
    expect(other.stderr).not.toMatch(/ landed [0-9a-f]{10}/);
    expect(project.marks()).toEqual(['gate']);
    expect(project.landed()).toEqual(['one']);
    expect(await project.leftovers()).toEqual(nothingLeft);
  });
});

describe('a worker that lost its task', () => {
  it('does not land a task that a person has claimed in the meantime', async () => {
    const project = workerProject({
      agents: { implement: 'echo a > new.txt; echo "<next>land</next>"' },
      tasks: { one: '# Add a file\n' },
      config: `workers: { verify: "${gated('verify')}" }`,
    });
    const worker = project.worker(['--once']);
    await until(() => project.marks().length === 1);
    await vi.waitFor(
      () => change(project, "UPDATE claims SET token = token + 1, run_id = NULL, claimed_by = 'ana'"),
      untilStoreIsFree,
    );
    project.tell('verify', '');
    const { code, stderr } = await worker.ended;
    expect(stderr).not.toMatch(/ landed [0-9a-f]{10}/);
    expect(project.landed()).toEqual([]);
    expect(code).toBe(6);
    expect(await claimOf(project, 'one')).toMatchObject({ state: 'held', by: 'ana' });
    expect(project.stable(stderr)).toMatchInlineSnapshot(`
      "<time> worker-1  started on branch main
      <time> worker-1  picked up one, starting agent implement (P2, the only ready task; the default agent)
      <time> worker-1  agent implement (command) started
      <time> worker-1  | <next>land</next>
      <time> worker-1  implement -> land
      <time> worker-1  saved 2 files, +5 -0
      <time> worker-1  landing on main
      <time> worker-1  not landed on main: another process took over the work during the landing
      <time> worker-1  failed: another process took over the work during the landing
      <time> worker-1  gave up on one: another process took over the work during the landing; its work is on reprise/parked/one
      <time> worker-1  hint: see who has the task now: reprise status
      <time> worker-1  done: finished one task (--once)
      "
    `);
  });
});
