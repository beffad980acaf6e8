import { readdirSync, readFileSync } from 'node:fs';

/**
 * The output of a Claude Code session that works on source code, line by line. All texts come from this repository. The
 * lines have the format of captured ones and tend to be shorter than real ones: the list of tools is empty, thoughts have
 * no long signature, and thinking is counted once per thought. Claude Code 2.1.325, led through the same 25 calls by a
 * model that answers from a script, printed 277,417 bytes, and 555,976 with partial messages.
 */

/** A line of a captured stream. The session replaces the parts that are declared here. */
interface CapturedLine {
  readonly type: string;
  readonly message?: { readonly usage?: object };
  readonly request?: object;
  readonly tool_result_meta?: readonly object[];
}

const captured = (name: string): readonly CapturedLine[] =>
  readFileSync(new URL(`../../src/agents/fixtures/streams/${name}.ndjson`, import.meta.url), 'utf8')
    .split('\n')
    .filter(line => line.startsWith('< '))
    .map(line => JSON.parse(line.slice(2)));

const lines = captured('claude-stdio-perm');

function like(type: string, index = 0): CapturedLine {
  const line = lines.filter(line => line.type === type)[index];
  if (!line) throw new Error(`no line ${type} was captured`);
  return line;
}

/** Texts and tools of one round. The last round of a session is a summary. */
const rounds = ['Find', 'Grep', 'Read', 'Read', 'Edit', 'Test', 'Read', 'Read', 'Edit', 'Test'] as const;

/** Number of characters in one delta: a few tokens. */
const deltaCharacters = 24;

const root = new URL('../../', import.meta.url);
const guides = readdirSync(new URL('docs/guide/', root)).map(name => `docs/guide/${name}`);

/** Sentences of the documents. A session uses each one at most once. */
const sentences = ['ARCHITECTURE.md', ...guides]
  .filter(name => name.endsWith('.md'))
  .flatMap(name => readFileSync(new URL(name, root), 'utf8').split('\n\n'))
  .filter(text => /^[A-Z]/.test(text))
  .flatMap(text => text.replaceAll('\n', ' ').split(/(?<=\.) /))
  .filter(text => text.length > 40 && text.endsWith('.'));

const said = (from: number, count: number) =>
  Array.from({ length: count }, (_, at) => sentences[(from + at) % sentences.length]).join(' ');
const sentence = (number: number) => said(number * 7, 1);
const thought = (number: number) => said(number * 7 + 1, 5);

/** The first line: the available commands, in a list of realistic length. */
export const typeable = Array.from({ length: 48 }, (_, at) => ({
  name: `command-${at}`,
  description: thought(at).slice(0, 280),
  argumentHint: '',
  builtin: true,
}));

/** The same ids in every session, as long as real ones. */
function counter(seed: number) {
  let next = seed * 1_000_003;
  const digits = () => {
    next = (Math.imul(next, 1_664_525) + 1_013_904_223) >>> 0;
    return next.toString(16).padStart(8, '0');
  };
  return {
    uuid: () => {
      const [a, b, c, d] = [digits(), digits(), digits(), digits()];
      return `${a}-${b.slice(0, 4)}-4${b.slice(5)}-a${c.slice(1, 4)}-${c.slice(4)}${d}`;
    },
    name: (prefix: string) => `${prefix}_01${(digits() + digits() + digits()).slice(0, 22)}`,
  };
}

interface SourceFile {
  readonly path: string;
  readonly text: string;
}

interface SessionOptions {
  /** Number of tool calls. */
  readonly calls: number;
  /** Whether deltas are printed as well. */
  readonly isPartial: boolean;
  readonly cwd: string;
  /** Files to work on. */
  readonly files: readonly SourceFile[];
  readonly seed: number;
}

/** Settings of the program that stands in for Claude Code, in a file. */
export interface StandInSettings extends Pick<SessionOptions, 'calls' | 'isPartial' | 'files'> {
  /** File for the number of bytes that it printed. */
  readonly printed: string;
}

/** A change of the agent: a new file, or a text in a file that it replaces. */
export type Act =
  | { readonly path: string; readonly content: string }
  | { readonly path: string; readonly from: string; readonly to: string };

/** A line to print, which may wait for permission, or a change to make. */
type SessionPart = { readonly line: string; readonly isQuestion?: true } | { readonly act: Act };

/** Part of an answer of the model. */
type Block =
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly input: object };

interface ToolCall {
  readonly input: object;
  readonly content: string;
  readonly result: object;
  readonly mustAsk?: boolean;
  readonly act?: Act;
}

/** The empty form of a block, and its content as deltas. */
function deltasOf(block: Block) {
  switch (block.type) {
    case 'thinking':
      return {
        empty: { thinking: '', signature: '' },
        kind: 'thinking_delta',
        field: 'thinking',
        text: block.thinking,
      };
    case 'text':
      return { empty: { text: '' }, kind: 'text_delta', field: 'text', text: block.text };
    case 'tool_use':
      return {
        empty: { id: block.id, name: block.name, input: {} },
        kind: 'input_json_delta',
        field: 'partial_json',
        text: JSON.stringify(block.input),
      };
  }
}

/** The parts of a session, in order. */
export function claudeSession({
  calls,
  isPartial,
  cwd,
  files,
  seed,
}: SessionOptions): readonly SessionPart[] {
  const ids = counter(seed);
  const sessionId = ids.uuid();
  const base = { session_id: sessionId, parent_tool_use_id: null };
  const print: SessionPart[] = [];
  const put = (line: object) => print.push({ line: JSON.stringify({ ...line, uuid: ids.uuid() }) });
  put({ ...like('system'), cwd, original_cwd: cwd, session_id: sessionId });

  const deltas = (message: string, index: number, block: Block) => {
    if (!isPartial) return;
    const api = { ...base, api_message_id: message };
    const event = (content: object) => put({ type: 'stream_event', event: content, ...api });
    const { empty, kind, field, text } = deltasOf(block);
    event({ type: 'content_block_start', index, content_block: { type: block.type, ...empty } });
    for (let at = 0; at < text.length; at += deltaCharacters) {
      const delta = { type: kind, [field]: text.slice(at, at + deltaCharacters) };
      event({ type: 'content_block_delta', index, delta });
    }
  };

  /** One answer of the model: one line per block. */
  const say = (blocks: readonly Block[]) => {
    const sample = like('assistant');
    const id = ids.name('msg');
    const usage = { ...sample.message?.usage, input_tokens: 3, cache_read_input_tokens: 21_804 };
    const api = { ...base, api_message_id: id };
    const event = (content: object) => isPartial && put({ type: 'stream_event', event: content, ...api });
    event({ type: 'message_start', message: { ...sample.message, id, content: [], usage } });
    for (const [index, block] of blocks.entries()) {
      deltas(id, index, block);
      if (block.type === 'thinking')
        put({ type: 'system', subtype: 'thinking_tokens', estimated_tokens: 120, session_id: sessionId });
      put({ ...sample, ...base, message: { ...sample.message, id, content: [block], usage } });
      event({ type: 'content_block_stop', index });
    }
    event({ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage });
    event({ type: 'message_stop' });
  };

  const call = (number: number, name: string, { input, content, result, mustAsk, act }: ToolCall) => {
    const id = ids.name('toolu');
    say([
      ...(number % 2 === 0
        ? [{ type: 'thinking' as const, thinking: thought(number + seed * 60), signature: 'ZmFrZQ==' }]
        : []),
      ...(number % 3 === 0 ? [{ type: 'text' as const, text: sentence(number + seed * 60) }] : []),
      { type: 'tool_use', id, name, input },
    ]);
    if (mustAsk) {
      const sample = like('control_request');
      const request = {
        ...sample.request,
        tool_name: name,
        display_name: name,
        input,
        tool_use_id: id,
      };
      print.push({ line: JSON.stringify({ ...sample, request_id: ids.uuid(), request }), isQuestion: true });
    }
    const sample = like('user', 1);
    const answer = { tool_use_id: id, type: 'tool_result', content, is_error: false };
    if (act) print.push({ act });
    put({
      ...sample,
      ...base,
      message: { role: 'user', content: [answer] },
      tool_use_result: result,
      tool_result_meta: sample.tool_result_meta?.map(meta => ({ ...meta, id })),
    });
  };

  for (let number = 0; number < calls; number++) {
    const round = rounds[number % rounds.length] ?? 'Read';
    const name = number === calls - 2 ? 'Write' : number === calls - 1 ? 'Test' : round;
    call(number, name in commands ? 'Bash' : name, tools[name]({ number, cwd, files, seed }));
  }
  const summary = `${sentence(seed)}\n\n${[2, 5, 8].map(at => `- ${sentence(seed + at)}`).join('\n')}`;
  say([{ type: 'text', text: summary }]);
  put({ ...like('result'), session_id: sessionId, num_turns: calls + 1, result: summary });
  return print;
}

interface CallOptions extends Pick<SessionOptions, 'cwd' | 'files' | 'seed'> {
  readonly number: number;
}

type Tool = (options: CallOptions) => ToolCall;

const bash = (command: string, description: string, stdout: string): ToolCall => ({
  input: { command, description },
  content: stdout,
  result: { stdout, stderr: '', interrupted: false, isImage: false, noOutputExpected: false },
});

const commands = {
  Find: ({ files }) =>
    bash("find src -name '*.ts'", 'List the modules', files.map(({ path }) => path).join('\n')),
  Grep: ({ number, files }) => {
    const pattern = ['export const', 'readonly', 'function', 'return'][number % 4] ?? '';
    const found = files.flatMap(({ path, text }) =>
      text.split('\n').flatMap((line, at) => (line.includes(pattern) ? `${path}:${at + 1}:${line}` : [])),
    );
    const command = `grep -rn '${pattern}' src | head -40`;
    return bash(command, `Look for ${pattern}`, found.slice(0, 40).join('\n'));
  },
  Test: ({ number, files, seed }) => {
    const line = ({ path, text }: SourceFile, at: number) =>
      ` ✓ ${path.replace('.ts', '.test.ts')} (${(text.length % 23) + 1} tests) ${(at * 37 + number * 11 + seed) % 400}ms`;
    const end = `\n Test Files  ${files.length} passed (${files.length})\n   Duration  ${(number * 131) % 4000}ms`;
    const stdout = ['> test\n> vitest run\n', ...files.map(line), end].join('\n');
    return { ...bash('npm test', 'Run the tests', stdout), mustAsk: true };
  },
} satisfies Record<string, Tool>;

const fileAt = (files: readonly SourceFile[], index: number): SourceFile => {
  const file = files[index % files.length];
  if (!file) throw new Error('the session has no files');
  return file;
};

const tools = {
  ...commands,
  Read: ({ number, files, cwd, seed }) => {
    const { path, text } = fileAt(files, number + seed);
    const all = text.split('\n');
    const filePath = `${cwd}/${path}`;
    return {
      input: { file_path: filePath },
      content: all.map((line, at) => `${at + 1}\t${line}`).join('\n'),
      result: {
        type: 'text',
        file: { filePath, content: text, numLines: all.length, startLine: 1, totalLines: all.length },
      },
    };
  },
  /** Changes the file that was read just before. */
  Edit: ({ number, files, cwd, seed }) => {
    const { path, text } = fileAt(files, number - 1 + seed);
    const all = text.split('\n');
    const from = Math.floor(all.length / 3);
    const old = all.slice(from, from + 6);
    const now = [
      ...old.slice(0, 3),
      `// ${sentence(number)}`,
      ...all.slice(from + 3, from + 12),
      ...old.slice(3),
    ];
    const filePath = `${cwd}/${path}`;
    const [oldString, newString] = [old.join('\n'), now.join('\n')];
    return {
      input: { file_path: filePath, old_string: oldString, new_string: newString },
      content: `The file ${filePath} has been updated successfully. (file state is current in your context — no need to Read it back)`,
      result: {
        filePath,
        oldString,
        newString,
        originalFile: text,
        structuredPatch: [
          {
            oldStart: from + 1,
            oldLines: old.length,
            newStart: from + 1,
            newLines: now.length,
            lines: now.map((line, at) => `${at < 3 || at >= now.length - 3 ? ' ' : '+'}${line}`),
          },
        ],
        userModified: false,
        replaceAll: false,
      },
      mustAsk: true,
      act: { path, from: oldString, to: newString },
    };
  },
  Write: ({ number, files, cwd, seed }) => {
    const path = `src/added-${seed}-${number}.ts`;
    const bySize = files.toSorted((a, b) => a.text.length - b.text.length);
    const content = fileAt(bySize, Math.floor(files.length / 2)).text;
    return {
      input: { file_path: `${cwd}/${path}`, content },
      content: `File created successfully at: ${cwd}/${path}`,
      result: {
        type: 'create',
        filePath: `${cwd}/${path}`,
        content,
        structuredPatch: [],
        originalFile: null,
      },
      mustAsk: true,
      act: { path, content },
    };
  },
} satisfies Record<string, Tool>;
