import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { agentProject } from '../e2e/agent-project.ts';

const claude = resolve('test/support/claude-agent/program.mjs');

interface Failure {
  readonly script: string;
  /** Setting of the agent that limits it. */
  readonly limit?: string;
  readonly code: string;
  readonly says: RegExp;
  readonly hint: RegExp;
}

const failures: Readonly<Record<string, Failure>> = {
  'exits with 1': {
    script: 'echo "oh dear" >&2; exit 1',
    code: 'AGENT_FAILED',
    says: /exited with code 1 without a result\noh dear/,
    hint: /run `sh agents\/bad\.sh` by hand.*\.log/,
  },
  'exits with 0 and reports a failure': {
    script: `echo '{"type":"result","error":"I could not"}'`,
    code: 'AGENT_FAILED',
    says: /^I could not$/,
    hint: /read the output of the agent/,
  },
  'kills its own process': {
    script: 'kill -9 $$',
    code: 'KILLED',
    says: /killed by SIGKILL/,
    hint: /retry the step/,
  },
  'takes too long': {
    script: 'sleep 1000',
    limit: 'timeout: 3s',
    code: 'TIMEOUT',
    says: /took longer than 3\.0s/,
    hint: /`timeout` of the agent `bad`/,
  },
  'stops printing': {
    script: 'echo hello; sleep 1000',
    limit: 'stall_timeout: 3s',
    code: 'AGENT_STALLED',
    says: /printed nothing for 3 s/,
    hint: /`stall_timeout` of the agent `bad`/,
  },
  'prints events and then half a line': {
    script: `echo '{"type":"text","text":"x"}'; printf '{"type":"resu'`,
    code: 'AGENT_PROTOCOL',
    says: /without a result/,
    hint: /\{"type":"result"/,
  },
  'closes its output and fails': {
    script: 'exec >&- 2>&-; exit 4',
    code: 'AGENT_FAILED',
    says: /exited with code 4/,
    hint: /by hand/,
  },
  'ignores signals': {
    script: "trap '' TERM INT HUP; while :; do sleep 0.05; done",
    limit: 'timeout: 3s',
    code: 'TIMEOUT',
    says: /took longer/,
    hint: /`timeout`/,
  },
  'hangs with a child in another process session that ignores SIGTERM': {
    script: `setsid sh -c "trap '' TERM; touch $MARKS.born; sleep 1000" & until [ -e "$MARKS.born" ]; do sleep 0.02; done; sleep 1000`,
    limit: 'timeout: 3s',
    code: 'TIMEOUT',
    says: /took longer/,
    hint: /`timeout`/,
  },
};

describe('an agent that', () => {
  it.each(Object.entries(failures))(
    '%s fails its step with a message and a hint, keeps its work and leaves no process running',
    async (_, { script, limit = '', code, says, hint }) => {
      const project = agentProject({
        config: `  bad: { kind: command, command: [sh, agents/bad.sh], ${limit} }`,
        files: {
          'agents/bad.sh': `cat > /dev/null; echo half > half.txt; ${script}\n`,
          'w.yaml': 'steps:\n  - { id: s, agent: bad, prompt: x }\n  - { id: t, needs: [s], run: "true" }\n',
        },
      });
      const before = project.checkout();
      const outcome = await project.outcome(['run', 'w.yaml']);
      expect(outcome).toMatchObject({ code: 1, status: 'failed', error: { code } });
      expect(outcome.error?.message).toMatch(says);
      expect(outcome.error?.hint).toMatch(hint);
      expect(project.leftRunning()).toEqual([]);
      expect(project.git('show', `reprise/w/${outcome.run}/s:half.txt`)).toBe('half');
      expect(project.checkout()).toBe(before);
    },
  );

  it.each([
    ['prints incomplete JSON', `printf '{"type":"resu'`, '{"type":"resu'],
    ['closes its output early', 'echo hi; exec >&- 2>&-; sleep 0.3; touch late.txt', 'hi'],
    [
      'leaves a child in another process session',
      `setsid sh -c "touch $MARKS.born; sleep 1000" & until [ -e "$MARKS.born" ]; do sleep 0.02; done; echo ok`,
      'ok',
    ],
    ['prints nothing', 'true', ''],
  ])('%s completes its step and leaves no process running', async (_, script, text) => {
    const project = agentProject({ agents: { odd: script } });
    expect(await project.outcome(['run', '--agent', 'odd', '--prompt', 'x'])).toMatchObject({
      code: 0,
      output: { work: { text } },
    });
    expect(project.leftRunning()).toEqual([]);
  });

  it.each([
    ['[[error]]', '', 'AGENT_UNAVAILABLE', /add `retry`/],
    ['[[hang]]', '', 'TIMEOUT', /`timeout` of the agent `c`/],
    ['[[text]]', 'output: { type: object }', 'OUTPUT_INVALID', /in the prompt/],
  ])('speaks the protocol of Claude Code fails its step: %s', async (prompt, more, code, hint) => {
    const project = agentProject({
      config: `  c: { kind: claude, command: [node, ${claude}], timeout: 5s }`,
      files: { 'w.yaml': `steps:\n  - { id: s, agent: c, prompt: "${prompt}", ${more} }\n` },
    });
    const outcome = await project.outcome(['run', 'w.yaml']);
    expect(outcome).toMatchObject({ code: 1, error: { code, hint: expect.stringMatching(hint) } });
    expect(project.leftRunning()).toEqual([]);
  });
});

/** Damage that an agent does to its workspace. It must not reach the checkout of the project. */
describe('an agent that, in its workspace,', () => {
  it.each([
    ['removes .git', 'rm .git; echo new > new.txt'],
    [
      'removes .git and then commits',
      'rm .git; echo new > new.txt; git add new.txt; git commit --message own || true',
    ],
    [
      'creates a repository',
      'rm .git; git init --quiet; echo new > new.txt; git add .; git -c user.name=a -c user.email=b commit --quiet --message own',
    ],
    [
      'leaves the index lock of a killed git process',
      'touch "$(git rev-parse --git-dir)/index.lock"; echo new > new.txt',
    ],
    [
      'switches to another branch',
      'git switch --quiet --create own; echo new > new.txt; git add .; git commit --quiet --message own',
    ],
    [
      'detaches HEAD',
      'git checkout --quiet --detach; echo new > new.txt; git add .; git commit --quiet --message own',
    ],
  ])('%s still gets its work saved on its branch', async (_, script) => {
    const project = agentProject({ agents: { confused: `(${script}) > /dev/null 2>&1` } });
    const before = project.checkout();
    const outcome = await project.outcome(['run', '--agent', 'confused', '--prompt', 'x']);
    expect(outcome).toMatchObject({ code: 0, status: 'completed' });
    const branch = `reprise/confused/${outcome.run}/work`;
    expect(project.git('show', `${branch}:new.txt`)).toBe('new');
    expect(project.checkout()).toBe(before);
    expect((await project.cli(['land', outcome.run, 'work'])).code).toBe(0);
    expect(project.read('new.txt')).toBe('new\n');
    expect((await project.cli(['gc'])).code).toBe(0);
    expect(project.git('status', '--porcelain')).toBe('');
  });

  it('removes the folder itself fails its step with WORKSPACE_FAILED', async () => {
    const project = agentProject({ agents: { confused: 'cd /; rm -rf "$REPRISE_WORKSPACE"' } });
    const before = project.checkout();
    const outcome = await project.outcome(['run', '--agent', 'confused', '--prompt', 'x']);
    expect(outcome).toMatchObject({ code: 1, error: { code: 'WORKSPACE_FAILED' } });
    expect(outcome.error?.message).toContain('was removed while the step was running');
    expect(project.checkout()).toBe(before);
  });
});
