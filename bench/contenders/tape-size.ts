import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { acpProtocol } from '../../src/agents/acp/acp.ts';
import { claudeProtocol } from '../../src/agents/claude/claude.ts';
import { appServerProtocol } from '../../src/agents/codex/app-server.ts';
import { codexProtocol } from '../../src/agents/codex/exec.ts';
import type { Protocol, ProtocolContext } from '../../src/agents/driver/protocol.ts';
import { addUsage, noUsage } from '../../src/agents/session.ts';
import { withShownOutputs } from '../../src/engine/recording/encode.ts';
import { setTextsApart } from '../../src/engine/recording/long-texts.ts';
import { formatRecording, type RecordedSession } from '../../src/engine/recording/session-file.ts';
import type { StandInSettings } from '../lib/claude-session.ts';
import { contend } from '../lib/contend.ts';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const reprise = join(repository, 'dist', 'cli', 'main.js');
const standIn = join(repository, 'bench', 'dist', 'claude-stand-in.js');

/** The files to work on: modules of this repository of typical size. */
const files = ['core', 'workflow', 'process', 'git', 'effects', 'store'].flatMap(room =>
  readdirSync(join(repository, 'src', room))
    .filter(name => name.endsWith('.ts') && !name.includes('test'))
    .map(name => ({
      path: `src/${room}/${name}`,
      text: readFileSync(join(repository, 'src', room, name), 'utf8'),
    }))
    .filter(({ text }) => text.length > 2500 && text.length < 9000)
    .slice(0, 4),
);

const quoted = (text: string) => JSON.stringify(text);

interface RecordedRun {
  /** Number of tool calls of each session. */
  readonly calls: number;
  readonly isPartial: boolean;
  readonly workers: number;
  readonly showsThinking: boolean;
}

const caseFile = (settings: string, { workers, showsThinking }: RecordedRun) => `
description = "A run whose tape is measured."
show_thinking = ${showsThinking}

[run]
args = ["work"]

[files]
"reprise.yaml" = ${quoted(`agents:
  coder:
    kind: claude
    permissions: full
    command: [${[process.execPath, standIn, settings].map(quoted).join(', ')}]
`)}
".reprise/workflows/work.yaml" = ${quoted(`name: work
steps:
  - id: work
    agent: coder
    strategy: { matrix: { seed: [${Array.from({ length: workers }, (_, at) => `'${at + 1}'`).join(', ')}] } }
    prompt: "Make the parsers say where a problem is, and add a test for every one of them."
    env: { SEED: "\${{ matrix.seed }}" }
`)}
${files.map(({ path, text }) => `${quoted(path)} = ${quoted(text)}`).join('\n')}
`;

const sizesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => statSync(join(folder, name)).isFile())
    .map(name => ({ name, size: statSync(join(folder, name)).size }));

const sum = (numbers: readonly number[]) => numbers.reduce((all, number) => all + number, 0);

const streams = join(repository, 'src', 'agents', 'fixtures', 'streams');

/** Output of a coding agent in a session, without its input. */
function printedIn(file: string) {
  const lines = readFileSync(join(streams, file), 'utf8').trimEnd().split('\n');
  const isTwoWay = lines.some(line => line.startsWith('> '));
  return isTwoWay ? lines.flatMap(line => (line.startsWith('< ') ? line.slice(2) : [])) : lines;
}

function eventsFrom<State>(lines: readonly string[], protocol: Protocol<State>) {
  let { state } = protocol.open();
  return lines.flatMap(line => {
    const step = protocol.take(state, line);
    state = step.state;
    return step.signals.flatMap(signal => (signal.kind === 'event' ? signal.event : []));
  });
}

function eventsIn(file: string, lines: readonly string[], context: ProtocolContext) {
  if (file.startsWith('acp')) return eventsFrom(lines, acpProtocol(context));
  if (file.startsWith('codex-appserver')) return eventsFrom(lines, appServerProtocol(context));
  if (file.startsWith('codex')) return eventsFrom(lines, codexProtocol(context));
  return eventsFrom(lines, claudeProtocol(context));
}

/** Size of the session file in a case, in bytes. */
function keptOf(file: string, lines: readonly string[]) {
  const agent = { name: 'coder', kind: 'claude' } as const;
  const rules = { allow: [], deny: [] };
  const prompt = 'Create the file, please.';
  const events = eventsIn(file, lines, {
    request: {
      agent: { ...agent, ...rules, permissions: 'edit', args: [], env: {} },
      prompt,
      cwd: '/work',
      permissions: { ...rules, agent: agent.name, preset: 'edit' },
    },
    rule: () => ({ kind: 'decided', decision: { kind: 'allow' } }),
    now: () => Date.now(),
  });
  const texts = events.flatMap(event => (event.type === 'text' ? event.text : []));
  const usage = events.flatMap(event => (event.type === 'usage' ? event : [])).reduce(addUsage, noUsage);
  const sha = 'a'.repeat(40);
  const before = {
    head: { commit: sha, branch: 'reprise/work/8855r5c66j/work' },
    tree: sha,
    index: { tree: sha, intentToAdd: [] },
    stashes: [],
    emptyFolders: [],
    refs: {},
  };
  const recording: RecordedSession = {
    kind: 'session',
    file: '',
    ...{ role: 'coder', task: 'run.work', n: 0, order: 0, agent, prompt, promptHash: sha, resumes: false },
    before,
    after: { ...before, tree: 'b'.repeat(40) },
    pack: 'c'.repeat(64),
    lines: events.filter(({ type }) => type !== 'thought').map(event => ({ kind: 'event', event })),
    result: { kind: 'ok', text: texts.at(-1) ?? '', usage, denials: [] },
  };
  const { text, blob } = setTextsApart(formatRecording(withShownOutputs(recording), { line: line => line }));
  return Buffer.byteLength(text) + (blob?.content.length ?? 0);
}

export const methods = {
  /** Share of the captured streams that their session files keep. */
  async captured() {
    return readdirSync(streams)
      .toSorted()
      .map(file => {
        const lines = printedIn(file);
        const raw = Buffer.byteLength(lines.join('\n')) + 1;
        return { name: file.replace('.ndjson', ''), raw, kept: keptOf(file, lines) };
      });
  },

  /** Records a run, and reports the bytes that were printed and kept. */
  async run(folder: string, run: RecordedRun) {
    const settings = join(folder, 'settings.json');
    const printed = join(folder, 'printed.txt');
    const plan: StandInSettings = { calls: run.calls, isPartial: run.isPartial, files, printed };
    writeFileSync(settings, JSON.stringify(plan));
    const place = join(folder, 'cases', 'measured');
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, 'measured.toml'), caseFile(settings, run));
    const { status, stdout, stderr } = spawnSync(process.execPath, [reprise, 'test', '--record'], {
      cwd: folder,
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`the run was not recorded:\n${stdout}${stderr}`);
    const all = sizesIn(place);
    const of = (pattern: RegExp) => sum(all.flatMap(({ name, size }) => (pattern.test(name) ? size : [])));
    return {
      raw: sum(readFileSync(printed, 'utf8').trim().split('\n').map(Number)),
      tape: of(/\.vcr$/),
      score: of(/\.score$/),
      sessions: of(/^sessions\/.*\.jsonl$/),
      patches: of(/\.patch$/),
      blobs: of(/^blobs\//),
      snapshot: of(/\.snap$/),
      case: of(/\.toml$/),
    };
  },
};

await contend(methods);
