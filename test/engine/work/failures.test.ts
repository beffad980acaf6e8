import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { AgentDefinition } from '../../../src/agents/agent.ts';
import type { Clock } from '../../../src/core/time.ts';
import { systemClock } from '../../../src/effects/world.ts';
import { isSameProcess, processStart } from '../../../src/process/table.ts';
import { deferred } from '../../support/engine.ts';
import { agentBody, agentOf, command, scripted, workLab } from './support.ts';

const forever = 'setInterval(() => {}, 1000);';

/** Creates a step whose agent is this program. The test fails if the program leaves a process running. */
async function stepWith(source: string, given: Partial<AgentDefinition> = {}) {
  const lab = await workLab();
  const agent = agentOf({ command: lab.program(source), ...given });
  lab.define(agent);
  return { lab, unit: lab.unit(agentBody()) };
}

const failed = (code: string, message: RegExp, hint: RegExp = /./) => ({
  kind: 'failed',
  error: { code, message: expect.stringMatching(message), hint: expect.stringMatching(hint) },
});

describe('an agent', () => {
  test('fails the attempt with the end of its output if it exits with code 1', async () => {
    const { unit } = await stepWith("console.error('out of cheese'); process.exit(1)");
    const end = await unit.work();
    expect(end).toMatchObject(failed('AGENT_FAILED', /code 1.*\nout of cheese/s, /session\.log/));
    expect(end).toMatchObject({ error: { exitCode: 1 } });
    expect(unit.of('session.ended')).toMatchObject([{ outcome: 'failed' }]);
  });

  test('is restarted once if it lost a race with another first start', async () => {
    const lostRace = "console.error('Error: failed to initialize sqlite state runtime'); process.exit(1)";
    const thread = { type: 'thread.started', thread_id: 't1' };
    const works = `for (const line of ${JSON.stringify([thread, { type: 'turn.completed' }])}) console.log(JSON.stringify(line))`;
    const source = `import fs from 'node:fs'; if (fs.existsSync('made')) { ${works} } else { fs.writeFileSync('made', ''); ${lostRace} }`;
    const { unit, lab } = await stepWith(source, { kind: 'codex' });
    expect(await unit.work()).toMatchObject({ kind: 'completed' });
    expect(unit.of('session.ended')).toMatchObject([
      { outcome: 'failed' },
      { outcome: 'ok', sessionId: 't1' },
    ]);
    expect(lab.notices).toEqual(['fix: agent coder failed to start; trying once more']);
    const { unit: other } = await stepWith(lostRace, { kind: 'codex' });
    expect(await other.work()).toMatchObject(failed('AGENT_FAILED', /state runtime/));
    expect(other.of('session.ended')).toHaveLength(2);
  });

  test('fails the attempt if it exits with code 0 but reports a failure', async () => {
    const { unit } = await stepWith(`console.log('{"type":"result","error":"I give up"}')`);
    expect(await unit.work()).toMatchObject(failed('AGENT_FAILED', /I give up/));
  });

  test('is reported as killed if it is killed from outside', async () => {
    const { unit } = await stepWith("process.kill(process.pid, 'SIGKILL')");
    expect(await unit.work()).toMatchObject(failed('KILLED', /SIGKILL/, /retry the step/));
  });

  test('is stopped after its timeout if it hangs, and its work is kept', async () => {
    const here = deferred();
    const hour = 3_600_000;
    // The timeout passes once the agent has done its work, however long the program takes to start.
    const clock: Clock = {
      ...systemClock,
      waitUntil: (at, signal) =>
        at - systemClock.now() > hour / 2 ? here.promise : systemClock.waitUntil(at, signal),
    };
    const lab = await workLab({ clock });
    const source = `import fs from 'node:fs'; fs.writeFileSync('half.txt', 'half'); console.log('here'); ${forever}`;
    lab.define(agentOf({ command: lab.program(source), timeoutMs: hour }));
    const unit = lab.unit(agentBody());
    void lab.seen(each => each.kind === 'agent' && each.event.type === 'text').then(here.resolve);
    expect(await unit.work()).toMatchObject(failed('TIMEOUT', /longer than 1h/, /`timeout`.*`coder`/));
    expect(unit.of('session.ended')).toMatchObject([{ outcome: 'cancelled' }]);
    expect(unit.git('log', '-1', '--format=%s')).toBe('fix: unfinished work');
    expect(unit.git('show', 'HEAD:half.txt')).toBe('half');
  });

  test('is stopped after the stall timeout of the step if it is silent', async () => {
    const { lab } = await stepWith(forever);
    const unit = lab.unit(agentBody(), { model: { timeout: { stallMs: 300 } } });
    expect(await unit.work()).toMatchObject(
      failed('AGENT_STALLED', /printed nothing for 0\.3 s/, /`timeout.stall` of the step/),
    );
  });

  test('does not fill the memory of Reprise if it prints 100 MB', async () => {
    const { unit, lab } = await stepWith(`
      const part = ('x'.repeat(999) + '\\n').repeat(1000);
      const write = left => (left === 0 ? process.exit(1) : process.stdout.write(part, () => write(left - 1)));
      write(100);`);
    lab.observations.push = () => 0;
    const before = process.memoryUsage().rss;
    let peak = before;
    const watch = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().rss);
    }, 20);
    expect(await unit.work()).toMatchObject(failed('AGENT_FAILED', /code 1/));
    clearInterval(watch);
    expect((peak - before) / 1e6).toBeLessThan(300);
  });

  test('fails with a protocol error if it prints broken JSON and no result', async () => {
    const { unit } = await stepWith(
      `console.log('{"type":"text","text":"hm"}'); console.log('{"type":"result"')`,
    );
    expect(await unit.work()).toMatchObject(failed('AGENT_PROTOCOL', /a result that cannot be read/));
  });

  test('fails with a protocol error if it closes its output early', async () => {
    const { unit } = await stepWith(`import fs from 'node:fs'; fs.closeSync(1); ${forever}`, {
      kind: 'claude',
    });
    expect(await unit.work()).toMatchObject(failed('AGENT_PROTOCOL', /closed its output/));
  });

  test('is killed when the step is cancelled and it ignores every other signal', async () => {
    const deaf = `for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => {}); console.log('here'); ${forever}`;
    const { lab, unit } = await stepWith(deaf);
    const here = lab.seen(each => each.kind === 'agent' && each.event.type === 'text');
    expect(await unit.work({ cancelWhen: here })).toEqual({ kind: 'cancelled', reason: 'cancelled' });
    expect(unit.types.slice(-2)).toEqual(['session.ended', 'workspace.saved']);
    expect(unit.of('session.ended')).toMatchObject([{ outcome: 'cancelled' }]);
  });

  test('cannot leave a child running in another process session', async () => {
    const { unit } = await stepWith(`
      import { spawn } from 'node:child_process';
      const child = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' });
      child.unref();
      console.log(child.pid);`);
    const end = await unit.work();
    const pid = Number(end.kind === 'completed' && (end.output as { text: string }).text);
    expect(pid).toBeGreaterThan(1);
    expect(isSameProcess({ pid, processStart: processStart(pid) ?? '' })).toBe(false);
  });

  test('fails with a hint that contains the line that would allow a denied tool', async () => {
    const lab = await workLab({
      agents: [scripted([{ ask: { tool: 'Bash', input: { command: 'npm publish' } } }, { say: 'Done.' }])],
    });
    const unit = lab.unit(agentBody());
    expect(await unit.work()).toMatchObject(
      failed('PERMISSION_DENIED', /npm publish/, /allow: \["Bash\(npm publish\)"\]/),
    );
    expect(unit.of('session.ended')).toMatchObject([
      { outcome: 'failed', denials: [{ tool: 'Bash', lineToAdd: 'allow: ["Bash(npm publish)"]' }] },
    ]);
  });

  test('may run the checks of its step', async () => {
    const lab = await workLab({
      agents: [scripted([{ ask: { tool: 'Bash', input: { command: 'npm test' } } }, { say: 'Done.' }])],
    });
    const check = { ...command('true'), text: 'npm test' };
    expect(await lab.unit(agentBody({ work: { checks: [check] } })).work()).toMatchObject({
      kind: 'completed',
    });
  });
});

describe('a cancellation', () => {
  test('keeps the work and runs the teardown', async () => {
    const lab = await workLab({
      agents: [
        scripted([{ write: { path: 'half.txt', content: 'half' } }, { say: 'here' }, { sleep: 60_000 }]),
      ],
    });
    const unit = lab.unit(agentBody({ work: { teardown: [command('echo torn > torn.txt')] } }));
    const here = lab.seen(each => each.kind === 'agent' && each.event.type === 'text');
    expect(await unit.work({ cancelWhen: here })).toMatchObject({ kind: 'cancelled' });
    expect(unit.git('show', 'HEAD:half.txt')).toBe('half');
    expect(unit.read('torn.txt')).toBe('torn\n');
  });

  test('stops a check that hangs', async () => {
    const lab = await workLab({ agents: [scripted([{ say: 'Done.' }])] });
    const unit = lab.unit(agentBody({ work: { checks: [command('echo checking; sleep 1000')] } }));
    const here = lab.seen(each => each.kind === 'output' && each.line === 'checking');
    expect(await unit.work({ cancelWhen: here })).toMatchObject({ kind: 'cancelled' });
  });
});

test('the answer of an agent is never interpreted in commits, logs and history', async () => {
  const nasty = '\u001b[31m$(touch /tmp/x) `id` "quoted" \'\0--amend\nsecond';
  const lab = await workLab({
    agents: [scripted([{ write: { path: '-rf $(x)\n"q".txt', content: 'x' } }, { say: nasty }])],
  });
  const unit = lab.unit(agentBody());
  expect(await unit.work()).toEqual({ kind: 'completed', output: { text: nasty } });
  expect(unit.git('log', '-1', '--format=%s')).toBe('fix: [31m$(touch /tmp/x) `id` "quoted" \' --amend');
  expect(unit.git('show', '--name-only', '-z', '--format=')).toBe('-rf $(x)\n"q".txt\0');
});

test('the logs contain the activity of the agent and its raw output', async () => {
  const { lab, unit } = await stepWith(`
    console.log(JSON.stringify({ type: 'text', text: 'Looking.' }));
    console.log(JSON.stringify({ type: 'tool-start', id: '1', name: 'Bash', input: { command: 'ls' } }));
    console.log(JSON.stringify({ type: 'tool-end', id: '1', ok: true, output: 'a.txt' }));
    console.log(JSON.stringify({ type: 'result', text: 'Done.' }));`);
  await unit.work();
  expect(lab.log('fix.1.log')).toBe('Looking.\n> Bash {"command":"ls"}\n< a.txt\n');
  expect(lab.log('fix.1.0.session.log').split('\n')).toHaveLength(5);
  expect(readFileSync(`${unit.folder}/a.txt`, 'utf8')).toBe('one\n');
});

test('a process that lost its run no longer touches the workspace', async () => {
  const lab = await workLab({
    agents: [
      scripted([{ write: { path: 'half.txt', content: 'half' } }, { say: 'here' }, { sleep: 60_000 }]),
    ],
  });
  const unit = lab.unit(agentBody({ work: { teardown: [command('touch torn')] } }));
  const here = lab.seen(each => each.kind === 'agent' && each.event.type === 'text');
  await expect(unit.work({ cancelWhen: here, fencedFrom: 'session.ended' })).rejects.toMatchObject({
    code: 'FENCED',
  });
  expect(unit.git('status', '--porcelain')).toBe('?? half.txt');
  expect(unit.read('torn')).toBeUndefined();
});
