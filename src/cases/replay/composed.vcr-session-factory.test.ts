import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { agentOf, requestOf, resultOf } from '../../agents/test-support.ts';
import { parseSessionFile } from '../../engine/recording/decode.ts';
import { plainEnvironment } from '../../git/test-support.ts';
import { runShellStep } from '../../process/shell-step.ts';
import { agent, workflow } from '../../workflow/builder/index.ts';
import { createVcrSessionFactory } from './composed.ts';
import { Stage } from './test-support.ts';

const files: Readonly<Record<string, string>> = {
  dispatch: '{"result": {"task": "fix"}}\n',
  edits: [
    '{"thought": "What is it?"}',
    '{"text": "I fix it."}',
    '{"edit": {"path": "a.txt", "replace": "one", "with": "two"}}',
    '{"edit": {"path": "docs/b.txt", "content": "b\\n"}}',
    '{"commit": "Fix it"}',
    '{"delete": "docs/b.txt"}',
    '{"result": "Fixed."}',
  ].join('\n'),
};

function factoryOf(stage: Stage, more: Readonly<Record<string, string>> = {}) {
  const all = { ...files, ...more };
  return createVcrSessionFactory({
    workers: [
      {
        name: 'worker-a',
        sessions: [
          { role: 'dispatch', vcr: 'dispatch' },
          { role: 'coder', vcr: 'edits' },
        ],
      },
    ],
    load: name => parseSessionFile(`${name}.jsonl`, all[name] ?? ''),
    redactor: stage.redactor,
    blobs: () => new Uint8Array(),
    repository: () => stage.lab.open(),
    applyDeltas: true,
  });
}

// The marker identifies orphaned processes of a session, so it must be unique.
const marker = { REPRISE_RUN: randomUUID() };
const host = { onEvent: () => {}, graceMs: 500, inheritEnv: plainEnvironment, marker };
const asked = (name: string, cwd: string) => requestOf({ agent: agentOf({ name, kind: 'claude' }), cwd });

describe('hand-written sessions', () => {
  it('are served to each worker in order, with real edits and commits', async () => {
    const stage = new Stage();
    const factory = factoryOf(stage);
    const open = factory.of('worker-a');
    const first = open(asked('dispatch', stage.lab.root), host);
    expect(resultOf(await first.next())).toMatchObject({ kind: 'ok', structured: { task: 'fix' } });
    await first.close();
    expect(factory.leftOver()).toEqual(['worker-a: coder (edits)']);
    const second = open(asked('coder', stage.lab.root), host);
    expect(resultOf(await second.next())).toMatchObject({ kind: 'ok', text: 'Fixed.' });
    await second.close();
    expect(readFileSync(join(stage.lab.root, 'a.txt'), 'utf8')).toBe('two\n');
    expect(stage.lab.git('log', '--format=%s')).toBe('Fix it\nBegin');
    expect(stage.lab.git('status', '--porcelain')).toBe(' D docs/b.txt');
    expect(factory.leftOver()).toEqual([]);
    expect(factory.problems()).toEqual([]);
  });

  it('complete a whole run', async () => {
    const stage = new Stage();
    const factory = factoryOf(stage);
    const skip = factory.of('worker-a');
    const first = skip(asked('dispatch', stage.lab.root), host);
    await first.next();
    await first.close();
    const model = workflow('w', { steps: [agent('fix', { agent: 'coder', prompt: 'Fix it.' })] }).model;
    const coder = agentOf({ name: 'coder', kind: 'claude' });
    const played = await stage.play(
      { workflow: model, agents: [coder] },
      { openSession: factory.of('worker-a'), runShell: runShellStep },
    );
    expect(played.status).toBe('completed');
    expect(stage.onBranch('fix', 'a.txt')).toBe('two');
  });

  it('report the expected role or worker', async () => {
    const stage = new Stage();
    const factory = factoryOf(stage);
    const early = factory.of('worker-a')(asked('coder', stage.lab.root), host);
    await expect(early.next()).rejects.toMatchObject({ code: 'REPLAY_DIVERGED' });
    const unknown = factory.of('worker-b')(asked('coder', stage.lab.root), host);
    await expect(unknown.next()).rejects.toMatchObject({ code: 'REPLAY_DIVERGED' });
    for (const name of ['dispatch', 'coder']) {
      const session = factory.of('worker-a')(asked(name, stage.lab.root), host);
      await session.next();
      await session.close();
    }
    await expect(factory.of('worker-a')(asked('coder', stage.lab.root), host).next()).rejects.toThrow();
    expect(factory.problems().map(({ message, hint }) => `${message}\n  ${hint}`)).toMatchInlineSnapshot(`
      [
        "worker-a opens a session of agent coder, but its next session is dispatch with role dispatch
        list the sessions of worker-a in the order in which it opens them, or fix a role",
        "worker-b opens a session of agent coder, but has no sessions
        add { role = "coder", vcr = "..." } to the sessions of worker-b",
        "worker-a opens another session of agent coder, but none is left
        add { role = "coder", vcr = "..." } to the sessions of worker-a",
      ]
    `);
  });
});
