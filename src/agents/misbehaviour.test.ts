import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { isSameProcess, processStart } from '../process/table.ts';
import type { AgentKind } from './agent.ts';
import type { AgentEvent } from './session.ts';
import { agentLab, agentOf, resultOf } from './test-support.ts';

const lab = agentLab();

/** Kinds of agents that are driven by their output. All of them face the same faulty programs. */
const talkers = ['claude', 'codex', 'acp'] as const satisfies readonly AgentKind[];

const agentThat = (kind: AgentKind, source: string) => agentOf({ kind, command: lab.program(source) });
const run = (kind: AgentKind, source: string) => lab.run({ agent: agentThat(kind, source) });

const forever = 'setInterval(() => {}, 1000);';
const failedWith = (code: string, message: RegExp, hint: RegExp = /./) => ({
  kind: 'failed',
  error: { code, message: expect.stringMatching(message), hint: expect.stringMatching(hint) },
});

describe.each(talkers)('a %s agent whose program', kind => {
  test('exits with an error fails with the last lines of stderr', async () => {
    const { result } = await run(kind, "console.error('out of cheese'); process.exit(1)");
    expect(result).toMatchObject(failedWith('AGENT_FAILED', /code 1.*\nout of cheese/s, /by hand/));
    expect(result).toMatchObject({ error: { exitCode: 1 } });
  });

  test('exits with code 0 but without a result fails', async () => {
    const { result } = await run(kind, 'process.exit(0)');
    expect(result).toMatchObject(failedWith('AGENT_PROTOCOL', /exited without a result/));
  });

  test('is not logged in fails with AGENT_LOGIN', async () => {
    const { result } = await run(kind, "console.error('Not logged in'); process.exit(1)");
    expect(result).toMatchObject(failedWith('AGENT_LOGIN', /Not logged in/, /log ?in/));
  });

  test('is killed fails with KILLED', async () => {
    const { result } = await run(kind, "process.kill(process.pid, 'SIGKILL')");
    expect(result).toMatchObject(failedWith('KILLED', /SIGKILL/));
  });

  test('prints broken JSON fails with its last output', async () => {
    const { result, events } = await run(kind, `console.log('{"type":"result"'); console.log('hm')`);
    expect(result).toMatchObject(failedWith('AGENT_PROTOCOL', /last output: hm/));
    expect(events.filter(event => event.type === 'raw')).toHaveLength(2);
  });

  test('closes its output but keeps running fails', async () => {
    const { result } = await run(kind, `import fs from 'node:fs'; fs.closeSync(1); ${forever}`);
    expect(result).toMatchObject(failedWith('AGENT_PROTOCOL', /closed its output/));
  });

  test('prints a line of 100 MB fails without reading the line', async () => {
    const flood = `
      const part = 'x'.repeat(1e6);
      const write = left => (left === 0 ? process.stdout.write('\\n') : process.stdout.write(part, () => write(left - 1)));
      write(100);`;
    const { result, events } = await run(kind, flood);
    expect(result).toMatchObject(failedWith('AGENT_PROTOCOL', /too long to read/));
    expect(events.find(event => event.type === 'raw')).toMatchObject({
      line: expect.stringMatching(/^x{1,2000}…$/),
    });
  });

  test('hangs can be cancelled', async () => {
    const { session, waitFor } = lab.open(
      { agent: agentThat(kind, `console.log('here'); ${forever}`) },
      { graceMs: 200 },
    );
    const turn = session.next();
    await waitFor('raw');
    await session.cancel();
    expect(resultOf(await turn)).toMatchObject({ kind: 'cancelled' });
    await session.close();
  });

  test('hangs silently is stopped after the stall timeout', async () => {
    const agent = { ...agentThat(kind, forever), stallTimeoutMs: 50 };
    const { result } = await lab.run({ agent }, { graceMs: 200 });
    expect(result).toMatchObject(failedWith('AGENT_STALLED', /printed nothing/, /stall_timeout.*coder/));
  });

  test('ignores SIGINT and SIGTERM is killed', async () => {
    const deaf = `for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => {}); console.log('here'); ${forever}`;
    const { session, waitFor } = lab.open({ agent: agentThat(kind, deaf) }, { graceMs: 100 });
    const turn = session.next();
    await waitFor('raw');
    await session.cancel();
    expect(resultOf(await turn)).toMatchObject({ kind: 'cancelled' });
    await session.close();
  });

  test('leaves a child in its own session has that child stopped as well', async () => {
    const parent = `
      import { spawn } from 'node:child_process';
      const child = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' });
      child.unref();
      console.log(child.pid);`;
    const { events } = await run(kind, parent);
    const pid = Number(events.flatMap(event => (event.type === 'raw' ? event.line : []))[0]);
    expect(pid).toBeGreaterThan(1);
    expect(isSameProcess({ pid, processStart: processStart(pid) ?? '' })).toBe(false);
  });
});

test('an agent is not stalled while its tool runs silently', async () => {
  const source = `
    const print = line => console.log(JSON.stringify(line));
    process.on('SIGUSR2', () => {
      print({ type: 'tool-end', id: 't' });
      print({ type: 'result', text: 'The tests passed.' });
      process.exit(0);
    });
    print({ type: 'tool-start', id: 't', name: 'Bash' });
    ${forever}`;
  const stallTimeoutMs = 300_000;
  const pids: number[] = [];
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const { session, waitFor } = lab.open(
    { agent: { ...agentThat('command', source), stallTimeoutMs } },
    { onProcess: ({ pid }) => void pids.push(pid) },
  );
  const turn = session.next();
  await waitFor('tool-start');
  vi.advanceTimersByTime(3 * stallTimeoutMs);
  for (const pid of pids) process.kill(pid, 'SIGUSR2');
  expect(resultOf(await turn)).toMatchObject({ kind: 'ok', text: 'The tests passed.' });
  vi.useRealTimers();
  await session.close();
});

describe('a child process of a cancelled agent', () => {
  test('is stopped as well, even if it left the process tree', async () => {
    const source = `
      import { spawn } from 'node:child_process';
      const child = spawn('sh', ['-c', 'trap "" TERM INT; sleep 1000 & wait; sleep 1000'], { detached: true, stdio: 'ignore' });
      console.log(JSON.stringify({ type: 'text', text: String(child.pid) }));
      ${forever}`;
    const { session, waitFor } = lab.open({ agent: agentThat('command', source) }, { graceMs: 100 });
    const turn = session.next();
    const pid = Number(textOf(await waitFor('text')));
    const child = { pid, processStart: processStart(pid) ?? '' };
    expect(isSameProcess(child)).toBe(true);
    await session.cancel();
    expect(isSameProcess(child)).toBe(false);
    expect(resultOf(await turn)).toMatchObject({ kind: 'cancelled' });
    await session.close();
  });
});

describe('starting', () => {
  test('a missing program fails with a hint on how to install it', async () => {
    const env = { PATH: lab.folder };
    const { result } = await lab.run({ agent: agentOf({ kind: 'claude' }) }, { inheritEnv: env });
    expect(result).toMatchObject(
      failedWith('AGENT_NOT_FOUND', /`coder` needs `claude`/, /npm install -g @anthropic-ai\/claude-code/),
    );
  });

  test('in a missing folder fails with a message that names it', async () => {
    const { result } = await lab.run({ agent: agentThat('command', ''), cwd: '/no/such/folder' });
    expect(result).toMatchObject(failedWith('SPAWN_FAILED', /folder \/no\/such\/folder does not exist/));
  });

  test('is undone if the host fails to record the process', async () => {
    const onProcess = () => Promise.reject(new Error('disk full'));
    const { session } = lab.open({ agent: agentThat('command', forever) }, { onProcess });
    await expect(session.next()).rejects.toThrow('disk full');
    await session.close();
  });
});

test('the log file contains the output of the agent', async () => {
  const logFile = join(lab.folder, 'logs/agent.log');
  await lab.run({ agent: agentThat('command', "console.log('one'); console.error('two')") }, { logFile });
  expect(readFileSync(logFile, 'utf8').split('\n').toSorted()).toEqual(['', 'one', 'two']);
});

test('closing a running session cancels it', async () => {
  const { session, waitFor } = lab.open({ agent: agentThat('command', `console.log('here'); ${forever}`) });
  const turn = session.next();
  await waitFor('text');
  await session.close();
  expect(resultOf(await turn)).toMatchObject({ kind: 'cancelled' });
});

test('no events are reported after the end', async () => {
  const late = `
    console.log(JSON.stringify({ type: 'result', is_error: false, result: 'Fine.' }));
    console.log(JSON.stringify({ type: 'assistant', message: { content: [{ type: 'text', text: 'late' }] } }));`;
  const { result, events } = await run('claude', late);
  expect(result).toMatchObject({ kind: 'ok', text: 'Fine.' });
  expect(events.at(-1)).toEqual({ type: 'done', outcome: 'ok' });
});

const textOf = (event: AgentEvent): string => (event.type === 'text' ? event.text : '');
