import { describe, expect, test } from 'vitest';
import { policyOf, resultOf } from '../../src/agents/test-support.ts';
import { markedWith } from '../../src/process/tree.ts';
import { installedAgents } from './support/install.ts';
import { appears, realAgentLab } from './support/lab.ts';
import { acp, claude, codex, codexServer } from './support/players.ts';

const lab = realAgentLab();

/** Two processes under a shell of a tool of the agent. Claude refuses a long `sleep`. */
const command = 'tail -f /dev/null & echo started > started.txt; tail -f /dev/null';
const script = {
  sleep: [{ say: 'I sleep.', actions: [{ run: command }] }, { say: 'Good morning.' }],
  hang: [{ say: 'Wait', hangs: true }],
  again: [{ say: 'Here I am again.' }],
};

describe.skipIf(!installedAgents()).each([claude, codex, codexServer, acp])('$name', player => {
  const permissions = player === codex ? policyOf() : policyOf({ allow: [`Bash(${command})`] });

  test('is cancelled in the middle of a tool: nothing runs on, and the session can be resumed', async () => {
    const { open, run, model } = await lab.invite(player, script);
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

  test('is cancelled while the model is silent, as a timeout does it', async () => {
    const { open, model } = await lab.invite(player, script);
    const timeout = new AbortController();
    const { session } = open({ prompt: 'Now [[hang]].' }, { signal: timeout.signal, graceMs: 20_000 });
    const turn = session.next();
    await model.asked('hang');
    timeout.abort();
    expect(resultOf(await turn)).toMatchObject({ kind: 'cancelled', sessionId: expect.stringMatching(/./) });
    expect(markedWith(lab.marker())).toEqual([]);
    await session.close();
  });

  test('is cancelled before it has said a word', async () => {
    const { open, model } = await lab.invite(player, script);
    const { session } = open({ prompt: 'Now [[hang]].' }, { onProcess: () => void session.cancel() });
    expect(resultOf(await session.next())).toMatchObject({ kind: 'cancelled' });
    expect(model.requests).toEqual([]);
    await session.close();
  });
});
