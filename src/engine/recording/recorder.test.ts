import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { acpProtocol } from '../../agents/acp/acp.ts';
import { claudeProtocol } from '../../agents/claude/claude.ts';
import { appServerProtocol } from '../../agents/codex/app-server.ts';
import type { Signal } from '../../agents/driver/protocol.ts';
import { scriptedSessions } from '../../agents/scripted/scripted.ts';
import {
  addUsage,
  noUsage,
  type SessionFactory,
  type SessionHost,
  type SessionResult,
} from '../../agents/session.ts';
import {
  agentOf,
  eventsIn,
  policyOf,
  recordedStreams,
  requestOf,
  signalsOf,
} from '../../agents/test-support.ts';
import { createRedactor } from '../../effects/redact/redact.ts';
import { temporaryFolder } from '../../git/test-support.ts';
import { runShellStep } from '../../process/shell-step.ts';
import type { WorkScript } from '../environment.ts';
import { parseSessionFile } from './decode.ts';
import { createSessionRecorder, type SessionRecorderOptions } from './recorder.ts';

// Orphaned processes are found and stopped by this id, so it must be unique.
const runId = randomUUID();

function recorderIn(folder: string, overrides: Partial<SessionRecorderOptions> = {}) {
  const problems: string[] = [];
  const recorder = createSessionRecorder({
    folder,
    redactor: createRedactor({ paths: [{ name: 'folder', path: folder }], secrets: [] }),
    repository: async () => undefined,
    projectRoot: folder,
    task: ({ step }) => step,
    snapshotProject: false,
    openSession: scriptedSessions,
    runShell: runShellStep,
    onProblem: message => problems.push(message),
    ...overrides,
  });
  const sessions = join(folder, 'sessions');
  const files = () => (existsSync(sessions) ? readdirSync(sessions).toSorted() : []);
  return { recorder, problems, files, read: (name: string) => readFileSync(join(sessions, name), 'utf8') };
}

const hostOf = (overrides: Partial<SessionHost> = {}): SessionHost => ({
  onEvent: () => {},
  graceMs: 500,
  inheritEnv: process.env,
  marker: { REPRISE_RUN: runId },
  unit: { step: 'fix', attempt: 1, number: 1 },
  ...overrides,
});

const coder = (script: NonNullable<ReturnType<typeof agentOf>['script']>) =>
  agentOf({ name: 'coder', kind: 'scripted', script });

const scriptOf = (folder: string, script: string, overrides: Partial<WorkScript> = {}): WorkScript => ({
  unit: { step: 'fix', attempt: 1 },
  what: 'check-1',
  command: { script, shell: 'sh', env: {}, workingDirectory: folder },
  projectRoot: folder,
  scratchDir: join(folder, 'scratch'),
  logFile: join(folder, 'log'),
  identity: { runId, step: 'fix', attempt: 1, incarnation: runId },
  inheritEnv: process.env,
  signal: new AbortController().signal,
  graceMs: 500,
  ...overrides,
});

describe('a session recorder', () => {
  it('numbers only sessions that reached a result, across processes', async () => {
    const folder = temporaryFolder();
    const first = recorderIn(folder);
    const waiting = requestOf({ agent: coder([{ say: 'a' }, { sleep: 60_000 }]), cwd: folder });
    const cut = first.recorder.openSession(waiting, hostOf());
    const turn = cut.next();
    await cut.cancel();
    expect(await turn).toMatchObject({ result: { kind: 'cancelled' } });
    await cut.close();
    const quick = requestOf({ agent: coder([{ say: 'Done.' }]), cwd: folder });
    const whole = first.recorder.openSession(quick, hostOf());
    await whole.next();
    await whole.close();
    await first.recorder.close();
    expect(first.files()).toEqual(['coder.fix.0.cut0.jsonl', 'coder.fix.0.jsonl']);
    const second = recorderIn(folder);
    const more = second.recorder.openSession(quick, hostOf());
    await more.next();
    await more.close();
    await second.recorder.close();
    expect(second.files()).toContain('coder.fix.1.jsonl');
    expect(JSON.parse(second.read('coder.fix.1.jsonl').split('\n')[0] ?? '')).toMatchObject({
      n: 1,
      order: 2,
    });
  });

  it('records each question once, with its answer', async () => {
    const folder = temporaryFolder();
    const { recorder, read } = recorderIn(folder);
    const request = requestOf({
      agent: coder([{ ask: { tool: 'Bash', input: { command: 'make' } } }, { say: 'Done.' }]),
      permissions: policyOf({ otherwise: 'ask' }),
      cwd: folder,
    });
    const session = recorder.openSession(request, hostOf());
    expect(await session.next()).toMatchObject({ kind: 'question' });
    expect(await session.next()).toMatchObject({ kind: 'question' });
    expect(await session.next({ kind: 'allow' })).toMatchObject({ result: { kind: 'ok' } });
    await session.close();
    await recorder.close();
    const recorded = parseSessionFile('s.jsonl', read('coder.fix.0.jsonl'));
    expect(
      recorded.kind === 'session' && recorded.lines.filter(({ kind }) => kind !== 'event'),
    ).toMatchObject([
      { kind: 'question', question: { kind: 'permission', tool: 'Bash', input: { command: 'make' } } },
      { kind: 'answer', answer: { kind: 'allow' } },
    ]);
  });

  it('keeps what was written if the process dies', async () => {
    const folder = temporaryFolder();
    const { recorder, files, read } = recorderIn(folder);
    const received: string[] = [];
    let onText = () => {};
    const said = new Promise<void>(resolve => {
      onText = resolve;
    });
    const onEvent: SessionHost['onEvent'] = event => {
      received.push(event.type);
      if (event.type === 'text') onText();
    };
    const request = requestOf({ agent: coder([{ say: 'a' }, { sleep: 60_000 }]), cwd: folder });
    const session = recorder.openSession(request, hostOf({ onEvent }));
    const turn = session.next();
    await said;
    await new Promise(resolve => setImmediate(resolve));
    expect(files()).toEqual(['coder.fix.0.cut0.jsonl']);
    expect(read('coder.fix.0.cut0.jsonl')).toContain('{"text":"a"}\n');
    await session.close();
    await turn;
    expect(received).toContain('done');
  });

  it('never disturbs the work, and reports once that something is missing', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'sessions'), 'a file where a folder should be');
    const { recorder, problems } = recorderIn(folder);
    for (let round = 0; round < 2; round++) {
      const request = requestOf({ agent: coder([{ say: 'Done.' }]), cwd: folder });
      const session = recorder.openSession(request, hostOf());
      expect(await session.next()).toMatchObject({ result: { kind: 'ok', text: 'Done.' } });
      await session.close();
    }
    expect(await recorder.runShell(scriptOf(folder, 'echo a'))).toMatchObject({ kind: 'completed' });
    await recorder.close();
    expect(problems).toEqual([expect.stringContaining('the recording is incomplete')]);
  });
});

describe('a script recorder', () => {
  it('records output without local paths', async () => {
    const folder = temporaryFolder();
    const { recorder, files, read } = recorderIn(folder);
    const lines: string[] = [];
    const onLine: WorkScript['onLine'] = (stream, line) => lines.push(`${stream} ${line}`);
    await recorder.runShell(scriptOf(folder, 'pwd; echo; echo b', { onLine }));
    await recorder.close();
    expect(lines).toEqual([`stdout ${folder}`, 'stdout ', 'stdout b']);
    expect(files()).toEqual(['check-1.fix.0.jsonl']);
    const text = read('check-1.fix.0.jsonl');
    expect(text).not.toContain(folder);
    expect(parseSessionFile('check-1.fix.0.jsonl', text)).toMatchObject({
      role: 'check-1',
      command: { script: 'pwd; echo; echo b', shell: 'sh', working_directory: '<PATH:folder>' },
      // One text, however many pieces it arrived in.
      output: [{ stream: 'stdout', text: '<PATH:folder>\n\nb' }],
      end: { kind: 'completed', tail: '<PATH:folder>\n\nb\n' },
    });
  });

  it('names the file of a stopped script as interrupted', async () => {
    const folder = temporaryFolder();
    const { recorder, files } = recorderIn(folder);
    const abort = new AbortController();
    const onLine = () => abort.abort();
    const script = scriptOf(folder, 'echo begun; sleep 60', { signal: abort.signal, onLine });
    expect(await recorder.runShell(script)).toEqual({ kind: 'cancelled' });
    await recorder.close();
    expect(files()).toEqual(['check-1.fix.0.cut0.jsonl']);
  });
});

describe('the size of a recording', () => {
  const protocols = new Map<string, (lines: readonly string[]) => readonly Signal[]>([
    ['claude-stream-json', lines => signalsOf(claudeProtocol, lines)],
    ['claude-stdio-multi', lines => signalsOf(claudeProtocol, lines)],
    ['claude-partial-thinking', lines => signalsOf(claudeProtocol, lines)],
    ['codex-appserver-write', lines => signalsOf(appServerProtocol, lines)],
    ['acp-claude', lines => signalsOf(acpProtocol, lines)],
  ]);
  const streams = recordedStreams().filter(({ name }) => protocols.has(name));

  it.each(streams)('is at most a fifth of the output of the agent: $name', async ({ name, lines }) => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'work'));
    const events = eventsIn(protocols.get(name)?.(lines) ?? []);
    expect(events.length).toBeGreaterThan(2);
    const { recorder, read } = recorderIn(folder, { openSession: playing(events) });
    const session = recorder.openSession(requestOf({ agent: agentOf({ name: 'coder' }) }), hostOf());
    await session.next();
    await session.close();
    await recorder.close();
    const size = Buffer.byteLength(read('coder.fix.0.jsonl'));
    expect(size * 5).toBeLessThanOrEqual(Buffer.byteLength(lines.join('\n')));
  });
});

/** A session that only emits these events. */
const playing =
  (events: ReturnType<typeof eventsIn>): SessionFactory =>
  (_, host) => ({
    next: async () => {
      for (const event of events) host.onEvent(event);
      const used = events.flatMap(event => (event.type === 'usage' ? [event] : []));
      const usage = used.map(({ type: _type, ...rest }) => rest).reduce(addUsage, noUsage);
      const text = events.findLast(event => event.type === 'text')?.text ?? '';
      const sessionId = events.findLast(event => event.type === 'started')?.sessionId;
      const result: SessionResult = { kind: 'ok', text, usage, denials: [], sessionId };
      host.onEvent({ type: 'done', outcome: 'ok' });
      return { kind: 'end', result };
    },
    cancel: async () => {},
    close: async () => {},
  });
