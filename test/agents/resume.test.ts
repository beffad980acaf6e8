import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, test } from 'vitest';
import type { AgentEvent, SessionRequest } from '../../src/agents/session.ts';
import { requestOf } from '../../src/agents/test-support.ts';
import { endTrees, markedWith } from '../../src/process/tree.ts';
import { until } from '../e2e/run-inline.ts';
import { programOf } from '../support/program.ts';
import { installedAgents } from './support/install.ts';
import { appears, realAgentLab } from './support/lab.ts';
import { acp, claude, codex, codexServer, type Player } from './support/players.ts';

const lab = realAgentLab();
const program = await programOf(join(import.meta.dirname, 'support/host/program.ts'));

const script = {
  begin: [
    { say: 'I begin.', actions: [{ write: { path: 'begun.txt', content: 'begun\n' } }] },
    { say: 'Half of it is done', hangs: true },
  ],
  first: [{ say: 'First.' }],
  second: [{ say: 'Second.' }],
  more: [{ actions: [{ write: { path: 'more.txt', content: 'more\n' } }] }, { say: 'All of it is done.' }],
};

interface HostedSession {
  readonly request: Partial<SessionRequest>;
  readonly inheritEnv: Readonly<Record<string, string>>;
}

/** Runs a session in a separate process. Returns its events and a way to kill it. */
function hostElsewhere({ agent, permissions }: Player, { request, inheritEnv }: HostedSession) {
  const marker = { REPRISE_INCARNATION: randomUUID() };
  const file = lab.path('../hosted.json');
  const whole = requestOf({ agent, permissions, cwd: lab.workspace(), ...request });
  writeFileSync(file, JSON.stringify({ request: whole, inheritEnv, marker }));
  // Temporary files of a killed host are removed with the lab.
  const env = { ...process.env, TMPDIR: lab.path('..') };
  const host = spawn(process.execPath, [program, file], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const events: AgentEvent[] = [];
  createInterface({ input: host.stdout }).on('line', line => events.push(JSON.parse(line) as AgentEvent));
  return {
    events,
    /** Kills the host like a crash, then stops orphaned processes as the next owner does. */
    async kill() {
      const ended = once(host, 'close');
      host.kill('SIGKILL');
      await once(host, 'exit');
      await endTrees({ roots: [], marked: marker, graceMs: 2000 });
      expect(markedWith(marker)).toEqual([]);
      await ended;
    },
  };
}

const sessionIdIn = (events: readonly AgentEvent[]): string =>
  events.flatMap(event => (event.type === 'started' ? event.sessionId : []))[0] ?? '';

const saidTo = (conversation: { readonly turns: readonly { readonly text: string }[] } | undefined): string =>
  (conversation?.turns ?? []).map(({ text }) => text).join('\n');

describe.skipIf(!installedAgents()).each([claude, codex, codexServer, acp])('$name', player => {
  test('resumes the same session after its host was killed', async () => {
    const { model, inheritEnv, run } = await lab.prepare(player, script);
    const chosen = randomUUID();
    const request = { prompt: 'Please [[begin]].', sessionId: chosen };
    const host = hostElsewhere(player, { request, inheritEnv });
    await appears(lab.path('begun.txt'));
    await model.asked('begin', 2);
    // Codex reports the usage of an answer shortly after its next request.
    if (player === codexServer) await until(() => host.events.some(({ type }) => type === 'usage'));
    await host.kill();
    const sessionId = sessionIdIn(host.events);
    if (player === claude) expect(sessionId).toBe(chosen);

    const { result } = await run({ prompt: 'Do [[more]].', resume: { sessionId } });
    expect(result).toMatchObject({ kind: 'ok', text: 'All of it is done.', sessionId });
    expect(readFileSync(lab.path('more.txt'), 'utf8')).toBe('more\n');
    const told = saidTo(model.requestsFor('more')[0]?.conversation);
    expect(told).toContain('Please [[begin]].');
    expect(told).toContain('I begin.');
    // The killed process is counted too. Over ACP, its usage is the size of the context, with what the model had said.
    const used = host.events.flatMap(event => (event.type === 'usage' ? event.inputTokens : []));
    const sum = used.reduce((total, tokens) => total + tokens, result.usage.inputTokens);
    expect(sum).toBe(player === acp ? 310 : 300);
  });

  test('counts its usage once, even if it is resumed', async () => {
    const { run } = await lab.prepare(player, script);
    const first = await run({ prompt: 'Say the [[first]].' });
    expect(first.result.usage).toMatchObject({ inputTokens: 100, outputTokens: 10 });
    const { sessionId = '', usage } = first.result;
    const second = await run({ prompt: 'Say the [[second]].', resume: { sessionId, usage } });
    expect(second.result).toMatchObject({ kind: 'ok', text: 'Second.', sessionId });
    expect(second.result.usage).toEqual(usage);
  });
});
