import { describe, expect, test } from 'vitest';
import { policyOf, resultOf } from '../../src/agents/test-support.ts';
import { markedWith } from '../../src/process/tree.ts';
import { installedAgents } from './support/install.ts';
import { appears, realAgentLab } from './support/lab.ts';
import { acp, claude, codex, codexServer } from './support/players.ts';

const lab = realAgentLab();

/** Starts two processes under the shell of an agent's tool. Claude Code refuses a long `sleep`. */
const command = 'tail -f /dev/null & echo started > started.txt; tail -f /dev/null';
const script = {
  sleep: [{ say: 'I sleep.', actions: [{ run: command }] }, { say: 'Good morning.' }],
  hang: [{ say: 'Wait', hangs: true }],
  again: [{ say: 'Here I am again.' }],
};

describe.skipIf(!installedAgents()).each([claude, codex, codexServer, acp])('$name', player => {
  const permissions = player === codex ? policyOf() : policyOf({ allow: [`Bash(${command})`] });

  test('can be cancelled during a tool, which leaves no process and a session that can be resumed', async () => {
    const { open, run, model } = await lab.prepare(player, script);
    const { session, events } = open({ prompt: 'Now [[sleep]].', permissions }, { graceMs: 20_000 });
    const turn = session.next();
    await appears(lab.path('started.txt'));
    expect(markedWith(lab.marker()).length).toBeGreaterThan(2);
    await session.cancel();
    expect(markedWith(lab.marker())).toEqual([]);
    const result = resultOf(await turn);
    expect(result).toMatchObject({ kind: 'cancelled' });
    expect(events.at(-1)).toEqual({ type: 'done', outcome: 'cancelled' });
    await session.close();

    const { sessionId = '', usage } = result;
    const again = await run({ prompt: 'And [[again]].', permissions, resume: { sessionId, usage } });
    expect(again.result).toMatchObject({ kind: 'ok', text: 'Here I am again.', sessionId });
    const said = model
      .requestsFor('again')[0]
      ?.conversation.turns.map(({ text }) => text)
      .join('\n');
    expect(said).toContain('Now [[sleep]].');
  });

  test('can be cancelled while the model is silent, as after a timeout', async () => {
    const { open, model } = await lab.prepare(player, script);
    const timeout = new AbortController();
    const { session } = open({ prompt: 'Now [[hang]].' }, { signal: timeout.signal, graceMs: 20_000 });
    const turn = session.next();
    await model.asked('hang');
    timeout.abort();
    expect(resultOf(await turn)).toMatchObject({ kind: 'cancelled', sessionId: expect.stringMatching(/./) });
    expect(markedWith(lab.marker())).toEqual([]);
    await session.close();
  });

  test('can be cancelled before its first output', async () => {
    const { open, model } = await lab.prepare(player, script);
    const { session } = open({ prompt: 'Now [[hang]].' }, { onProcess: () => void session.cancel() });
    expect(resultOf(await session.next())).toMatchObject({ kind: 'cancelled' });
    expect(model.requests).toEqual([]);
    await session.close();
  });
});
