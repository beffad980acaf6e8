import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AgentEvent, addUsage, noUsage, type SessionResult } from '../../agents/session.ts';
import { RepriseError } from '../../core/errors.ts';
import { parseSessionFile } from './decode.ts';
import {
  formatRecording,
  type RecordedSession,
  type RecordedShell,
  type SessionLine,
  sessionFileName,
} from './session-file.ts';

const asIs = { line: (line: string) => line };
const oid = (digit: string) => digit.repeat(40);
const stateOf = (digit: string) => ({
  head: { commit: oid(digit), branch: 'work' },
  tree: oid(digit),
  index: { tree: oid(digit), intentToAdd: [] },
  stashes: [],
  emptyFolders: [],
  refs: {},
});

const sessionOf = (overrides: Partial<RecordedSession> = {}): RecordedSession => ({
  kind: 'session',
  file: 's.jsonl',
  role: 'coder',
  task: 'main.fix',
  n: 2,
  order: 3,
  agent: { name: 'coder', kind: 'claude', model: 'm' },
  prompt: 'Fix it.',
  promptHash: 'h',
  resumes: false,
  before: stateOf('a'),
  after: stateOf('b'),
  lines: [],
  ...overrides,
});

const shellOf = (overrides: Partial<RecordedShell> = {}): RecordedShell => ({
  kind: 'shell',
  file: 's.jsonl',
  role: 'check-1',
  what: 'check-1',
  task: 'main.fix',
  n: 0,
  order: 0,
  command: { script: 'npm test', shell: 'bash', working_directory: '<PATH:repo>' },
  before: null,
  after: null,
  output: [],
  end: { kind: 'completed', output: null, tail: '' },
  ...overrides,
});

const events = (...list: AgentEvent[]): SessionLine[] => list.map(event => ({ kind: 'event', event }));
const done = { type: 'done', outcome: 'ok' } as const;
const used = { inputTokens: 10, outputTokens: 2, cachedTokens: 0, costUsd: 0.25 };

describe('a session file', () => {
  it('repeats nothing', () => {
    const wish = { tool: 'Bash', input: { command: 'ls' } };
    const recording = sessionOf({
      lines: [
        ...events(
          { type: 'started', sessionId: 'id-1' },
          { type: 'tool-start', id: 't', name: 'Bash', input: wish.input },
        ),
        ...events({ type: 'permission', id: 'p', ...wish }),
        { kind: 'question', question: { kind: 'permission', id: 'p', ...wish } },
        { kind: 'answer', answer: { kind: 'deny', message: 'no' } },
        ...events({ type: 'permission', id: 'p', ...wish, decision: { kind: 'deny', message: 'no' } }),
        ...events({ type: 'tool-end', id: 't', ok: false }, { type: 'text', text: 'Sorry.' }),
        ...events({ type: 'usage', ...used }, done),
      ],
      result: {
        kind: 'ok',
        text: 'Sorry.',
        sessionId: 'id-1',
        usage: used,
        denials: [{ tool: 'Bash', message: 'no' }],
      },
      before: null,
      after: null,
    });
    const text = formatRecording(recording, asIs);
    expect(text).toMatchInlineSnapshot(`
      "{"format":2,"kind":"session","role":"coder","task":"main.fix","n":2,"order":3,"agent":{"name":"coder","kind":"claude","model":"m"},"prompt":"Fix it.","prompt_hash":"h"}
      {"before":null}
      {"type":"started","sessionId":"id-1"}
      {"type":"tool-start","id":"t","name":"Bash","input":{"command":"ls"}}
      {"type":"permission","id":"p"}
      {"question":{"kind":"permission","id":"p"}}
      {"answer":{"kind":"deny","message":"no"}}
      {"type":"permission","id":"p","decision":{"kind":"deny","message":"no"}}
      {"type":"tool-end","ok":false}
      {"text":"Sorry."}
      {"result":{"kind":"ok","said":"last","usage":{"inputTokens":10,"outputTokens":2,"cachedTokens":0,"costUsd":0.25}}}
      {"after":null}
      "
    `);
    expect(parseSessionFile('s.jsonl', text)).toEqual(recording);
  });

  it('adds up usage, except when a budget ended the session', () => {
    const usages = events({ type: 'usage', ...used }, { type: 'usage', ...used });
    const result: SessionResult = { kind: 'ok', text: '', usage: addUsage(used, used), denials: [] };
    const summed = parseSessionFile(
      's.jsonl',
      formatRecording(sessionOf({ lines: [...usages, ...events(done)], result }), asIs),
    ) as RecordedSession;
    expect(summed.lines).toEqual(events({ type: 'usage', ...addUsage(used, used) }, done));
    const why = { kind: 'budget', message: 'too much' } as const;
    const kept = sessionOf({ lines: [...usages, ...events(done)], result, why });
    expect(parseSessionFile('s.jsonl', formatRecording(kept, asIs))).toEqual(kept);
  });

  it('reads back what was written, whatever happened', () => {
    const text = fc.string();
    const input = fc.constantFrom({ command: 'ls' }, { path: 'a' }, 'x', null);
    const event: fc.Arbitrary<AgentEvent> = fc.oneof(
      fc.record({ type: fc.constant('text' as const), text }),
      fc.record({ type: fc.constant('thought' as const), text }),
      fc.record({ type: fc.constant('started' as const), sessionId: text }),
      fc.record({
        type: fc.constant('tool-start' as const),
        id: text,
        name: fc.constantFrom('Bash', 'Edit'),
        input,
      }),
      fc.record({ type: fc.constant('tool-end' as const), id: text, ok: fc.boolean() }),
      fc.record({
        type: fc.constant('permission' as const),
        id: text,
        tool: fc.constantFrom('Bash', 'Edit'),
        input,
      }),
      fc.record({ type: fc.constant('raw' as const), line: fc.string({ minLength: 1 }).map(s => `.${s}`) }),
    );
    const result = fc.record({
      kind: fc.constant('ok' as const),
      text,
      usage: fc.constantFrom(noUsage, used),
      denials: fc.constant([]),
    });
    fc.assert(
      fc.property(fc.array(event), result, fc.boolean(), (list, end, isCut) => {
        const tail = end.usage === used ? [{ type: 'usage', ...used } as const, done] : [done];
        const recording = sessionOf({
          lines: events(...list, ...tail),
          result: end,
          ...(isCut ? { cut: 1 } : {}),
        });
        const read = parseSessionFile('s.jsonl', formatRecording(recording, asIs));
        expect(read).toEqual(recording);
      }),
    );
  });

  it('is read as interrupted if it has no result, and may end in the middle of a line', () => {
    const [header = '', before = ''] = formatRecording(sessionOf({ cut: 1 }), asIs).split('\n');
    const text = `${header}\n${before}\n{"text":"a"}\n{"te`;
    expect(parseSessionFile('s.jsonl', text)).toEqual(
      sessionOf({ cut: 1, after: null, lines: events({ type: 'text', text: 'a' }) }),
    );
  });

  it('is named after its role, task and number', () => {
    expect(sessionFileName({ role: 'coder', task: 'a.fix:1/build', n: 2 })).toBe(
      'coder.a.fix.worker_1.build.2.jsonl',
    );
    expect(sessionFileName({ role: 'coder', task: 'fix', n: 2, cut: 0 })).toBe('coder.fix.2.cut0.jsonl');
  });
});

describe('a script file', () => {
  it('has one text per stretch of a stream, and its tail refers to those lines', () => {
    const recording = shellOf({
      output: [
        { stream: 'stdout', text: 'one\n\ntwo' },
        { stream: 'stderr', text: 'oh' },
      ],
      end: { kind: 'completed', output: { a: 1 }, tail: 'ne\n\ntwo\noh\n' },
    });
    const text = formatRecording(recording, asIs);
    expect(text).toMatchInlineSnapshot(`
      "{"format":2,"kind":"shell","role":"check-1","task":"main.fix","n":0,"order":0,"what":"check-1","command":{"script":"npm test","shell":"bash","working_directory":"<PATH:repo>"}}
      {"before":null}
      {"out":"one\\n\\ntwo"}
      {"err":"oh"}
      {"end":{"kind":"completed","output":{"a":1},"tail":{"lines":3,"first":"ne"}}}
      {"after":null}
      "
    `);
    expect(parseSessionFile('s.jsonl', text)).toEqual(recording);
  });

  it('joins what one stream printed at different times', () => {
    const text = formatRecording(shellOf(), asIs).replace(
      '{"end"',
      '{"out":"a"}\n{"out":"b\\nc"}\n{"err":""}\n{"end"',
    );
    expect(parseSessionFile('s.jsonl', text)).toMatchObject({
      output: [
        { stream: 'stdout', text: 'a\nb\nc' },
        { stream: 'stderr', text: '' },
      ],
    });
  });

  it('reads back what was written, whatever was printed', () => {
    const line = fc.stringMatching(/^[a-z ]{0,6}$/);
    const piece = fc.array(line, { minLength: 1, maxLength: 4 }).map(lines => lines.join('\n'));
    fc.assert(
      fc.property(fc.array(piece), fc.nat(40), fc.boolean(), (pieces, kept, isOpen) => {
        const output = pieces.map((text, index) => ({
          stream: index % 2 === 0 ? ('stdout' as const) : ('stderr' as const),
          text,
        }));
        const all = pieces.join('\n') + (isOpen ? '' : '\n');
        const tail = kept === 0 || pieces.length === 0 ? '' : all.slice(-kept);
        const recording = shellOf({ output, end: { kind: 'completed', output: null, tail } });
        expect(parseSessionFile('s.jsonl', formatRecording(recording, asIs))).toEqual(recording);
      }),
    );
  });
});

describe('an invalid session file', () => {
  const problemOf = (text: string): string => {
    try {
      parseSessionFile('sessions/x.jsonl', text);
    } catch (error) {
      if (error instanceof RepriseError) return `${error.code} ${error.message}`;
    }
    return 'no problem';
  };
  const lines = formatRecording(
    sessionOf({ result: { kind: 'ok', text: '', usage: noUsage, denials: [] } }),
    asIs,
  ).split('\n');
  const withLine = (line: string) => [...lines.slice(0, 2), line, ...lines.slice(2)].join('\n');

  it('is refused with its file and line', () => {
    const problems = [
      '',
      'not JSON\n',
      '["a list"]\n',
      lines.join('\n').replace('"format":2', '"format":3'),
      lines.join('\n').replace('"order":3', '"order":"third"'),
      withLine('{"type":"unheard-of"}'),
      withLine('{"type":"tool-end","id":"a"}'),
      withLine('{"type":"permission","id":"p"}'),
      withLine('{"te'),
      `${lines.join('\n')}{"text":"after the end"}\n`,
      lines.join('\n').replace('"after":{', '"after":{"more":1,'),
      lines.join('\n').replace('"after":{', '"after":{"emptyFolders":["../../out"],'),
      lines.join('\n').replace('"after":{', '"after":{"emptyFolders":[".git/hooks"],'),
      lines.join('\n').replace('"after":{', '"after":{"emptyFolders":["/etc/x"],'),
      '{"text":"a","thought":"b"}\n',
      '{"text":"a"}\n{"run":"rm -rf"}\n',
      '{"edit":{"path":"a"}}\n',
      '{"result":"done"}\n{"text":"more"}\n',
      '{"shout":"a"}\n',
    ].map(problemOf);
    expect(problems.join('\n')).toMatchInlineSnapshot(`
      "TAPE_INVALID sessions/x.jsonl:1 is empty
      TAPE_INVALID sessions/x.jsonl:1 is not JSON
      TAPE_INVALID sessions/x.jsonl:1 is not a JSON object
      REPLAY_DIVERGED sessions/x.jsonl:1 has format 3, but this version of Reprise reads format 2
      TAPE_INVALID sessions/x.jsonl:1 order: Invalid input: expected number, received string
      TAPE_INVALID sessions/x.jsonl:3 is not a valid line of a session: {"type":"unheard-of"}
      TAPE_INVALID sessions/x.jsonl:3 ok: Invalid input: expected boolean, received undefined
      TAPE_INVALID sessions/x.jsonl:3 must name its tool
      TAPE_INVALID sessions/x.jsonl:3 is not JSON
      TAPE_INVALID sessions/x.jsonl:5 comes after the end of the session
      TAPE_INVALID sessions/x.jsonl:4 Unrecognized key: "more"
      TAPE_INVALID sessions/x.jsonl:4 emptyFolders.0: the path "../../out" must stay inside the worktree
      TAPE_INVALID sessions/x.jsonl:4 emptyFolders.0: the path ".git/hooks" must not be inside .git
      TAPE_INVALID sessions/x.jsonl:4 emptyFolders.0: the path "/etc/x" must be relative to the worktree
      TAPE_INVALID sessions/x.jsonl:1 must have exactly one key
      TAPE_INVALID sessions/x.jsonl:2 runs a command, which a session written by hand cannot do
      TAPE_INVALID sessions/x.jsonl:1 an edit needs \`path\` and \`content\`, or \`path\`, \`replace\` and \`with\`
      TAPE_INVALID sessions/x.jsonl:2 comes after the end of the session
      TAPE_INVALID sessions/x.jsonl:1 has an unknown key \`shout\`"
    `);
  });
});
