import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { SessionRequest } from '../../src/agents/session.ts';
import { policyOf, resultOf } from '../../src/agents/test-support.ts';
import type { JsonObject } from '../../src/core/json.ts';
import type { ModelScript } from '../support/fake-model/script.ts';
import { installedAgents } from './support/install.ts';
import { realAgentLab } from './support/lab.ts';
import { acp, claude, codex, codexServer } from './support/players.ts';

const lab = realAgentLab();
const author = ['-c', 'user.name=Nobody', '-c', 'user.email=nobody@example.com'];
const command = 'echo made > made.txt';
/** Path outside of the workspace and of the temporary folders that Codex allows. */
function fileElsewhere(): string {
  const folder = mkdtempSync('/var/tmp/reprise-outside-');
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'outside.txt');
}

/** Codex only asks for commands that must run outside of its sandbox. */
const runs = {
  run: [{ say: 'I run it.', actions: [{ run: command, unconfined: true }] }, { say: 'That was it.' }],
};

describe.skipIf(!installedAgents()).each([claude, codexServer, acp])('$name', player => {
  const { allow } = player.permissions;
  const line = `allow: ${JSON.stringify([...allow, `Bash(${command})`]).replaceAll('","', '", "')}`;

  test('is told that a command is denied, and the result has the line that would allow it', async () => {
    const { run } = await lab.prepare(player, runs);
    const { result, events } = await run({ prompt: 'Please [[run]].' });
    expect(result).toMatchObject({
      kind: 'ok',
      text: 'That was it.',
      denials: [{ tool: 'Bash', message: expect.stringContaining(command), lineToAdd: line }],
    });
    expect(existsSync(lab.path('made.txt'))).toBe(false);
    expect(events.find(({ type }) => type === 'tool-end')).toMatchObject({ ok: false });
  });

  test('runs the command if that line is added', async () => {
    const { run } = await lab.prepare(player, runs);
    const permissions = policyOf({ allow: JSON.parse(line.slice('allow: '.length)) as string[] });
    const { result, events } = await run({ prompt: 'Please [[run]].', permissions });
    expect(result).toMatchObject({ kind: 'ok', denials: [] });
    expect(readFileSync(lab.path('made.txt'), 'utf8')).toBe('made\n');
    expect(events.find(({ type }) => type === 'tool-start')).toMatchObject({
      name: 'Bash',
      input: { command },
    });
    expect(events.find(({ type }) => type === 'tool-end')).toMatchObject({ ok: true });
  });

  test('asks the host and follows its answer', async () => {
    const { open } = await lab.prepare(player, {
      run: [{ actions: [{ run: command }] }, { actions: [{ run: 'echo two > two.txt' }] }, { say: 'Both.' }],
    });
    const { session } = open({ prompt: 'Please [[run]].', permissions: policyOf({ otherwise: 'ask' }) });
    expect(await session.next()).toMatchObject({
      question: { kind: 'permission', tool: 'Bash', input: { command } },
    });
    expect(await session.next({ kind: 'allow' })).toMatchObject({
      question: { input: { command: 'echo two > two.txt' } },
    });
    expect(resultOf(await session.next({ kind: 'deny', message: 'One is enough.' }))).toMatchObject({
      kind: 'ok',
      text: 'Both.',
      denials: [{ message: 'One is enough.' }],
    });
    expect([existsSync(lab.path('made.txt')), existsSync(lab.path('two.txt'))]).toEqual([true, false]);
    await session.close();
  });

  test('cannot edit with `read-only`, nor outside of its workspace with `edit`', async () => {
    const edits = (path: string) => [{ actions: [{ write: { path, content: 'x\n' } }] }, { say: 'Done.' }];
    const outside = fileElsewhere();
    const { run } = await lab.prepare(player, { inside: edits('inside.txt'), outside: edits(outside) });
    const readOnly = policyOf({ preset: 'read-only', allow: player.permissions.allow });
    await run({ prompt: 'Write [[inside]].', permissions: readOnly });
    expect(existsSync(lab.path('inside.txt'))).toBe(false);
    const { result } = await run({ prompt: 'Write [[outside]].' });
    expect(existsSync(outside)).toBe(false);
    expect(result.denials).toMatchObject([{ lineToAdd: expect.stringContaining(`Edit(/${outside})`) }]);
  });
});

describe.skipIf(!installedAgents())('claude in a repository with its own settings', () => {
  /** Worktree of a repository that the user has trusted, because Claude Code ignores the settings of others. */
  const inviteTo = async (settings: JsonObject, script: ModelScript) => {
    const repository = lab.path('repository');
    const cwd = join(repository, '.reprise/workspaces/one');
    mkdirSync(join(repository, '.claude'), { recursive: true });
    writeFileSync(join(repository, '.claude/settings.json'), JSON.stringify(settings));
    const invited = await lab.prepare(claude, script);
    const git = (...args: readonly string[]) =>
      execFileSync('git', [...author, ...args], { cwd: repository, env: invited.inheritEnv });
    git('init', '--quiet');
    git('add', '.');
    git('commit', '--quiet', '--message', 'Settings');
    git('worktree', 'add', '--quiet', cwd);
    const folder = invited.inheritEnv['CLAUDE_CONFIG_DIR'] ?? '';
    mkdirSync(folder, { recursive: true });
    const projects = { [repository]: { hasTrustDialogAccepted: true } };
    writeFileSync(join(folder, '.claude.json'), JSON.stringify({ projects }));
    return { run: (given: Partial<SessionRequest>) => invited.run({ cwd, ...given }), cwd };
  };

  test('does what the settings allow without asking', async () => {
    const { run, cwd } = await inviteTo(
      { permissions: { allow: ['Bash(mkdir *)'] } },
      { run: [{ actions: [{ run: 'mkdir made' }] }, { say: 'Ok.' }] },
    );
    const { result, events } = await run({ prompt: 'Please [[run]].' });
    expect(result).toMatchObject({ kind: 'ok', denials: [] });
    expect(events.find(({ type }) => type === 'tool-end')).toMatchObject({ ok: true });
    expect(existsSync(join(cwd, 'made'))).toBe(true);
    expect(events.filter(({ type }) => type === 'permission')).toEqual([]);
  });

  test('obeys `deny` rules of the agent even if the settings allow the action', async () => {
    const { run, cwd } = await inviteTo(
      { permissions: { allow: ['Bash(mkdir *)', 'Edit', 'Write'] } },
      {
        run: [{ actions: [{ run: 'mkdir made' }] }, { say: 'Ok.' }],
        edit: [{ actions: [{ write: { path: 'made.txt', content: 'made' } }] }, { say: 'Ok.' }],
      },
    );
    const denied = await run({
      prompt: 'Please [[run]].',
      permissions: policyOf({ deny: ['Bash(mkdir *)'] }),
    });
    expect(denied.events.find(({ type }) => type === 'tool-end')).toMatchObject({ ok: false });
    expect(existsSync(join(cwd, 'made'))).toBe(false);
    await run({ prompt: 'Please [[edit]].', permissions: policyOf({ preset: 'read-only' }) });
    expect(existsSync(join(cwd, 'made.txt'))).toBe(false);
  });
});

describe.skipIf(!installedAgents())('codex', () => {
  const inside = { run: [{ say: 'I run it.', actions: [{ run: command }] }, { say: 'That was it.' }] };

  test('without rules runs commands in its sandbox, which restricts them silently', async () => {
    const { run } = await lab.prepare(codex, inside);
    const readOnly = policyOf({ preset: 'read-only' });
    const { result } = await run({ prompt: 'Please [[run]].', permissions: readOnly });
    expect(existsSync(lab.path('made.txt'))).toBe(false);
    expect(result).toMatchObject({ kind: 'ok', denials: [] });
    const { events } = await run({ prompt: 'Please [[run]].' });
    expect(existsSync(lab.path('made.txt'))).toBe(true);
    expect(events.find(({ type }) => type === 'tool-start')).toMatchObject({ input: { command } });
  });

  test('has the same access with a rule that allows something else', async () => {
    const { run } = await lab.prepare(codexServer, inside);
    const { result } = await run({ prompt: 'Please [[run]].' });
    expect(result).toMatchObject({ kind: 'ok', denials: [] });
    expect(existsSync(lab.path('made.txt'))).toBe(true);
  });

  test('stays in its sandbox with such a rule too', async () => {
    const outside = fileElsewhere();
    const { run } = await lab.prepare(codexServer, {
      run: [{ actions: [{ run: `echo out > ${outside}` }] }, { say: 'That was it.' }],
    });
    await run({ prompt: 'Please [[run]].' });
    expect(existsSync(outside)).toBe(false);
  });

  test('leaves its sandbox with a rule that allows it', async () => {
    const outside = fileElsewhere();
    const { run } = await lab.prepare(codexServer, {
      run: [{ actions: [{ run: `echo out > ${outside}`, unconfined: true }] }, { say: 'That was it.' }],
    });
    const permissions = policyOf({ allow: [`Bash(echo out > ${outside})`] });
    const { result } = await run({ prompt: 'Please [[run]].', permissions });
    expect(result).toMatchObject({ kind: 'ok', denials: [] });
    expect(existsSync(outside)).toBe(true);
  });

  test('asks about every command if one is denied', async () => {
    const { run } = await lab.prepare(codexServer, inside);
    const permissions = policyOf({ deny: ['Bash(echo *)'] });
    const { result } = await run({ prompt: 'Please [[run]].', permissions });
    expect(result).toMatchObject({ kind: 'ok', denials: [{ tool: 'Bash' }] });
    expect(existsSync(lab.path('made.txt'))).toBe(false);
  });
});
