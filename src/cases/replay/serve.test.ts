import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { agentOf } from '../../agents/test-support.ts';
import { agent, shell, workflow } from '../../workflow/builder/index.ts';
import { essence, type Played, type RecordedPlay, Stage } from './test-support.ts';

const scripted = (script: NonNullable<ReturnType<typeof agentOf>['script']>, name = 'coder') =>
  agentOf({ name, kind: 'scripted', script });

const fixing = scripted([
  { think: 'It says one.' },
  { say: 'I shall fix it.' },
  { replace: { path: 'a.txt', from: 'one', to: 'two' } },
  { write: { path: 'new/b.txt', content: 'b\n' } },
  { commit: 'Say two' },
  { write: { path: 'c.txt', content: 'left uncommitted, correct-horse-battery\n' } },
  { say: 'Done.' },
]);

const fixFlow = workflow('w', { steps: [agent('fix', { agent: 'coder', prompt: 'Fix it.' })] }).model;

describe('a replayed run with agents', () => {
  it('gives the same commits, events and results in another folder', async () => {
    const play = { workflow: fixFlow, agents: [fixing] };
    const recorded = await new Stage().record(play);
    expect(recorded.problems).toEqual([]);
    expect(recorded.played.status).toBe('completed');
    const stage = new Stage();
    const replayed = await stage.replay(play, recorded);
    expect(essence(replayed)).toEqual(essence(recorded.played));
    expect(stage.onBranch('fix', 'c.txt')).toContain('left uncommitted');
    expect(replayed.vcr.applied()).toEqual([{ file: 'coder.main.fix.0.jsonl', kind: 'exact' }]);
    expect(replayed.vcr.leftOver()).toEqual([]);
    expect(replayed.vcr.stale()).toEqual([]);
    expect(replayed.vcr.problems()).toEqual([]);
    expect(replayed.log('fix.1.log')).toBe(recorded.played.log('fix.1.log'));
  });

  it('replays a program that prints its answer line by line', async () => {
    const stage = new Stage();
    const program = join(stage.lab.folder, 'agent.sh');
    writeFileSync(program, 'cat > /dev/null; echo one; echo two; echo made > made.txt; chmod +x made.txt');
    const coder = agentOf({ name: 'coder', kind: 'command', command: ['sh', program] });
    const recorded = await stage.record({ workflow: fixFlow, agents: [coder] });
    expect(recorded.played.agentEvents).toContainEqual({ type: 'text', text: 'one' });
    const other = new Stage();
    const replayed = await other.replay({ workflow: fixFlow, agents: [coder] }, recorded);
    expect(essence(replayed)).toEqual(essence(recorded.played));
    expect(other.onBranch('fix', 'made.txt')).toBe('made');
  });

  it('repeats the questions of a session', async () => {
    const asking = scripted([{ ask: { tool: 'Bash', input: { command: 'rm -rf /' } } }, { say: 'never' }]);
    const play = { workflow: fixFlow, agents: [asking] };
    const recorded = await new Stage().record(play);
    expect(recorded.played.status).toBe('failed');
    const replayed = await new Stage().replay(play, recorded);
    expect(essence(replayed)).toEqual(essence(recorded.played));
  });

  it('serves scripts with their output, failures, changes and logs', async () => {
    const checked = agent('fix', {
      agent: 'coder',
      prompt: 'Fix it.',
      setup: ['echo ready > ignored.txt; echo setting up'],
      checks: ['echo out; echo err >&2; grep -q two a.txt', 'echo formatted >> a.txt'],
    });
    const play = { workflow: workflow('w', { steps: [checked] }).model, agents: [fixing] };
    const recorded = await new Stage().record(play);
    expect(recorded.played.status).toBe('completed');
    const stage = new Stage();
    const replayed = await stage.replay(play, recorded);
    expect(essence(replayed)).toEqual(essence(recorded.played));
    expect(stage.onBranch('fix', 'a.txt')).toBe('two\nformatted');
    expect(replayed.log('fix.1.setup-1.log')).toBe('setting up\n');
    expect(replayed.vcr.leftOver()).toEqual([]);
  });

  it('serves a failing script with the same error', async () => {
    const failing = shell('build', { run: 'echo building; echo broken >&2; exit 3' });
    const play = { workflow: workflow('w', { steps: [failing] }).model };
    const recorded = await new Stage().record(play);
    expect(recorded.recordings).toMatchObject([
      { kind: 'shell', role: 'run', before: null, end: { kind: 'failed', error: { exitCode: 3 } } },
    ]);
    const replayed = await new Stage().replay(play, recorded);
    expect(replayed.status).toBe('failed');
    expect(replayed.result).toEqual(recorded.played.result);
    expect(new Set(replayed.output)).toEqual(new Set(recorded.played.output));
  });

  it('records changes of scripts to the project itself with `snapshotProject`', async () => {
    const steps = [
      shell('a', { run: 'echo a > made-by-a.txt' }),
      shell('b', { run: 'echo b > made-by-b.txt' }),
    ];
    const play = { workflow: workflow('w', { steps }).model };
    const recorded = await new Stage().record(play, { snapshotProject: true });
    const stage = new Stage();
    const replayed = await stage.replay(play, recorded);
    expect(replayed.status).toBe('completed');
    expect(readFileSync(join(stage.lab.root, 'made-by-a.txt'), 'utf8')).toBe('a\n');
    expect(readFileSync(join(stage.lab.root, 'made-by-b.txt'), 'utf8')).toBe('b\n');
  });

  it('numbers the sessions of a step that is reworked', async () => {
    const stage = new Stage();
    const reworked = agent('fix', {
      agent: 'coder',
      prompt: 'Fix it.',
      rework: 1,
      checks: ['test -e again'],
    });
    const coder = scripted([
      { run: 'if test -e once; then touch again; else touch once; fi' },
      { say: 'Done.' },
    ]);
    const play = { workflow: workflow('w', { steps: [reworked] }).model, agents: [coder] };
    const recorded = await stage.record(play);
    expect(recorded.played.status).toBe('completed');
    expect(recorded.recordings.map(({ file }) => file)).toEqual([
      'check-1.main.fix.0.jsonl',
      'check-1.main.fix.1.jsonl',
      'coder.main.fix.0.jsonl',
      'coder.main.fix.1.jsonl',
    ]);
    const replayed = await new Stage().replay(play, recorded);
    expect(essence(replayed)).toEqual(essence(recorded.played));
  });
});

describe('a session that was cancelled', () => {
  const slow = scripted([
    { say: 'I begin.' },
    { write: { path: 'half.txt', content: 'half\n' } },
    { say: 'Halfway.' },
    { sleep: 60_000 },
    { say: 'never' },
  ]);

  const cancelling = () => {
    const interrupt = new AbortController();
    return {
      workflow: fixFlow,
      agents: [slow],
      start: { interrupt: interrupt.signal },
      observe: (observation: { kind: string; event?: unknown }) => {
        if (JSON.stringify(observation).includes('Halfway.')) interrupt.abort('enough');
      },
    };
  };

  it('is numbered separately, and is cancelled again at the same point', async () => {
    const recorded = await new Stage().record(cancelling());
    expect(recorded.played.status).toBe('cancelled');
    expect(recorded.recordings).toMatchObject([
      { file: 'coder.main.fix.0.cut0.jsonl', n: 0, cut: 0, order: 0, result: { kind: 'cancelled' } },
    ]);
    const stage = new Stage();
    const replayed = await stage.replay(cancelling(), recorded);
    // The session is not held back here, so the cancel may arrive before its name is recorded.
    const unordered = (played: Played) => ({ ...essence(played), history: played.history.toSorted() });
    expect(unordered(replayed)).toEqual(unordered(recorded.played));
    expect(stage.onBranch('fix', 'half.txt')).toBe('half');
    expect(replayed.vcr.leftOver()).toEqual([]);
  });

  it('counts as a result if the host ended it, and repeats the reason', async () => {
    const coder = { ...slow, timeoutMs: 200 };
    const play = { workflow: fixFlow, agents: [coder] };
    const recorded = await new Stage().record(play);
    expect(recorded.recordings).toMatchObject([{ n: 0, why: { kind: 'timeout' } }]);
    const replayed = await new Stage().replay(
      { workflow: fixFlow, agents: [{ ...coder, timeoutMs: 60_000_000 }] },
      recorded,
    );
    expect(replayed.history).toEqual(recorded.played.history);
    expect(replayed.result).toMatchObject({ error: { code: 'TIMEOUT' } });
  });
});

describe('a replay that differs from its recording', () => {
  const play = { workflow: fixFlow, agents: [fixing] };
  let recording: Promise<RecordedPlay> | undefined;
  const recordOnce = (): Promise<RecordedPlay> => {
    recording ??= new Stage().record(play);
    return recording;
  };

  it('reports an edited prompt with a diff and the command, and still serves the session', async () => {
    const recorded = await recordOnce();
    const edited = workflow('w', { steps: [agent('fix', { agent: 'coder', prompt: 'Fix it well.' })] }).model;
    const replayed = await new Stage().replay({ ...play, workflow: edited }, recorded);
    expect(replayed.status).toBe('completed');
    expect(replayed.vcr.stale()).toEqual([
      {
        file: 'coder.main.fix.0.jsonl',
        role: 'coder',
        task: 'main.fix',
        what: 'the prompt',
        diff: '@@ -1,1 +1,1 @@\n-Fix it.\n+Fix it well.',
        command: 'reprise test the-case --record',
      },
    ]);
  });

  it('reports a session that was never recorded, even if the run handles the error', async () => {
    const recorded = await recordOnce();
    const others = recorded.recordings.map(each => ({ ...each, role: 'reviewer' }));
    const replayed = await new Stage().replay(play, { ...recorded, recordings: others });
    expect(replayed.status).toBe('failed');
    expect(
      replayed.vcr.problems().map(({ code, message, hint }) => ({ code, message, hint })),
    ).toMatchInlineSnapshot(`
      [
        {
          "code": "REPLAY_DIVERGED",
          "hint": "record it: reprise test the-case --record",
          "message": "no recording is left of a session of agent coder for main.fix
        expected: sessions/coder.main.fix.*.jsonl
        recorded for main.fix: reviewer",
        },
      ]
    `);
    expect(replayed.vcr.leftOver()).toEqual(['coder.main.fix.0.jsonl']);
  });

  it('reports recordings that were never requested', async () => {
    const recorded = await recordOnce();
    const replayed = await new Stage().replay(
      { workflow: workflow('w', { steps: [shell('fix', { run: 'true' })] }).model },
      recorded,
      { live: ['run'], runShell: async () => ({ kind: 'completed', output: null, tail: '' }) },
    );
    expect(replayed.vcr.leftOver()).toEqual(['coder.main.fix.0.jsonl']);
  });

  it('merges changes onto another base and marks them', async () => {
    const recorded = await recordOnce();
    const stage = new Stage();
    stage.lab.commit(stage.lab.root, 'other.txt', 'other\n');
    const replayed = await stage.replay(play, recorded);
    expect(replayed.status).toBe('completed');
    expect(replayed.vcr.applied()).toMatchObject([{ kind: 'counterfactual' }]);
    const conflicting = new Stage();
    conflicting.lab.commit(conflicting.lab.root, 'a.txt', 'three\n');
    const again = await conflicting.replay(play, recorded);
    expect(again.vcr.applied()).toMatchObject([{ kind: 'inconclusive', why: expect.any(String) }]);
  });

  it('never writes secrets of the environment to a file', async () => {
    const stage = new Stage();
    const telling = scripted([{ run: 'echo $PASSWORD' }, { say: 'It is correct-horse-battery.' }]);
    const recorded = await stage.record({ workflow: fixFlow, agents: [telling] });
    expect(JSON.stringify(recorded.played.agentEvents)).toContain('<SECRET:PASSWORD>');
    const text = readFileSync(join(stage.recordingFolder, 'sessions', 'coder.main.fix.0.jsonl'), 'utf8');
    expect(text).not.toContain('correct-horse');
    expect(text).not.toContain(stage.lab.folder);
  });
});

describe('live', () => {
  it('runs checks for real and needs no recording of them', async () => {
    const checked = agent('fix', {
      agent: 'coder',
      prompt: 'Fix it.',
      checks: ['touch "$REPRISE_ROOT/../ran"'],
    });
    const play = { workflow: workflow('w', { steps: [checked] }).model, agents: [fixing] };
    const recorded = await new Stage().record(play);
    const { runShellStep } = await import('../../process/shell-step.ts');
    const stage = new Stage();
    const replayed = await stage.replay(play, recorded, { live: ['checks'], runShell: runShellStep });
    expect(replayed.status).toBe('completed');
    expect(existsSync(join(stage.lab.folder, 'ran'))).toBe(true);
    expect(replayed.vcr.leftOver()).toEqual([]);
  });
});
