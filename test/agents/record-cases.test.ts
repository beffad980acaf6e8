import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Usage } from '../../src/agents/session.ts';
import { createProject } from '../e2e/run-inline.ts';
import type { ModelScript } from '../support/fake-model/script.ts';
import { dialogues, solvingTheConflict } from './recording/dialogues.ts';
import { recordCase } from './recording/record-case.ts';
import { installedAgents } from './support/install.ts';
import { costOfAnAnswer } from './support/project.ts';

const conflict = 'workers/landing_conflict';

/** Records a case in a project that contains only the case file. */
async function recordedAnew(name: string, dialogue: ModelScript) {
  const agents = installedAgents();
  if (!agents) throw new Error('the agents are not installed');
  const file = join('cases', name, `${name.split('/').at(-1)}.toml`);
  const { root, run } = createProject({ git: true, files: { [file]: readFileSync(file, 'utf8') } });
  await recordCase({ project: root, name, agents, dialogue });
  return {
    sessions: sessionsIn(join(root, 'cases', name, 'sessions')),
    /** Replays the case without agents and after the model was closed. */
    replay: () =>
      run(['test', name], { env: { CI: 'true', PATH: `${dirname(process.execPath)}:/usr/bin:/bin` } }),
  };
}

const sessionsIn = (folder: string) =>
  readdirSync(folder)
    .filter(file => file.endsWith('.jsonl'))
    .map(file => ({ file, lines: linesOf(join(folder, file)) }));

type Line = Readonly<Record<string, unknown>> & {
  readonly result?: { readonly usage: Usage };
  readonly name?: string;
};

const linesOf = (file: string): readonly Line[] =>
  readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as Line);

type Sessions = ReturnType<typeof sessionsIn>;

/** Every answer of the model has the same tokens and therefore the same cost. */
function expectEachAnswerPaidOnce(sessions: Sessions): void {
  for (const { file, lines } of sessions) {
    const usage = lines.flatMap(line => line.result?.usage ?? [])[0];
    const answers = (usage?.inputTokens ?? 0) / 100;
    expect(answers, file).toBeGreaterThan(0);
    expect(usage?.costUsd, file).toBeCloseTo(answers * costOfAnAnswer, 6);
  }
}

describe.skipIf(!installedAgents())('a case with Claude Code', () => {
  test.each(Object.keys(dialogues))(
    '%s can be recorded again, and replays without agent and model',
    async name => {
      const { sessions, replay } = await recordedAnew(name, dialogues[name]?.() ?? {});
      expectEachAnswerPaidOnce(sessions);
      expect(await replay()).toMatchObject({ code: 0, stderr: '' });
    },
  );

  test('resolves a conflict in the session that did the work, without counting its cost twice', async () => {
    const { [solvingTheConflict]: solves, ...rest } = dialogues[conflict]?.() ?? {};
    const { sessions, replay } = await recordedAnew(conflict, {
      ...rest,
      [solvingTheConflict]: asked => {
        const isToldAgain = asked.told.includes('Your last message was not accepted:');
        if (!isToldAgain) return { say: 'It looks well to me.\n<next>land</next>' };
        return (
          (Array.isArray(solves) ? solves[asked.index] : undefined) ?? { say: 'Nothing is left to say.' }
        );
      },
    });
    const polite = sessions.filter(({ file }) => file.startsWith('implement.polite.'));
    expect(polite.map(({ lines }) => lines[0]?.['resume'])).toEqual([undefined, true, true]);
    const ids = polite.map(({ lines }) => lines.find(line => line['type'] === 'started')?.['sessionId']);
    expect(new Set(ids).size).toBe(1);
    expect(polite.at(-1)?.lines.flatMap(line => line.name ?? [])).toEqual(['Read', 'Write']);
    expectEachAnswerPaidOnce(sessions);
    expect(await replay()).toMatchObject({ code: 0, stderr: '' });
  });
});
