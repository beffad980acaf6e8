import { describe, expect, test } from 'vitest';
import type { Json } from '../core/json.ts';
import { DefinitionError } from '../workflow/problems.ts';
import { loadConfig } from '../workflow/yaml/config.ts';
import { agentJsonSchema } from './agent.ts';
import { agentRules, parseAgents } from './definitions.ts';

function problemsOf(config: Json, files: { name: string; text: string }[] = []): readonly string[] {
  try {
    parseAgents({ config, files });
  } catch (error) {
    if (error instanceof DefinitionError) {
      return error.problems.map(({ message, hint, position }) => {
        const where = position ? `${position.file}:${position.line}:${position.column}: ` : '';
        return `${where}${message}${hint ? ` (${hint})` : ''}`;
      });
    }
    throw error;
  }
  return [];
}

describe('agents', () => {
  test('come from the configuration and from files, with defaults applied', () => {
    const agents = parseAgents({
      config: {
        planner: { kind: 'claude', model: 'opus', permissions: 'read-only' },
        toy: { kind: 'command', command: ['node', 'agent.js'], stall_timeout: '30s', timeout: 1000 },
        robot: {
          kind: 'scripted',
          script: [{ say: 'hello' }],
          price: { input_per_mtok: 1, output_per_mtok: 2 },
        },
      },
      files: [
        {
          name: 'coder',
          text: '---\nkind: codex\nallow: ["Bash(npm test)"]\n---\n\nYou write code.\n\nMuch.\n',
        },
      ],
    });
    expect([...agents.keys()]).toEqual(['planner', 'toy', 'robot', 'coder']);
    expect(agents.get('planner')).toMatchObject({
      kind: 'claude',
      model: 'opus',
      permissions: 'read-only',
      allow: [],
    });
    expect(agents.get('toy')).toMatchObject({ permissions: 'edit', stallTimeoutMs: 30_000, timeoutMs: 1000 });
    expect(agents.get('robot')).toMatchObject({ price: { inputPerMtok: 1, outputPerMtok: 2 } });
    expect(agents.get('coder')).toMatchObject({
      name: 'coder',
      kind: 'codex',
      allow: ['Bash(npm test)'],
      systemPrompt: 'You write code.\n\nMuch.',
    });
  });

  test('have a description and inputs', () => {
    const text = `---
kind: claude
description: Looks for errors.
inputs:
  summary: { description: What was done }
  risk: { required: false }
  files:
---
`;
    expect(parseAgents({ config: null, files: [{ name: 'review', text }] }).get('review')).toMatchObject({
      description: 'Looks for errors.',
      inputs: {
        summary: { description: 'What was done', required: true },
        risk: { required: false },
        files: { required: true },
      },
    });
  });

  test('report problems with their inputs at the right positions', () => {
    const text = `---
kind: claude
description: ""
inputs:
  agent: { description: Who }
  "the risk": {}
  files: { require: true }
  why: text
---
`;
    expect(problemsOf(null, [{ name: 'review', text }])).toMatchInlineSnapshot(`
      [
        ".reprise/agents/review.md:3:14: \`description\` must not be empty",
        ".reprise/agents/review.md:6:3: \`inputs.the risk\` is not a valid input name: start with a letter or \`_\`, then use letters, digits, \`_\` or \`-\`",
        ".reprise/agents/review.md:7:12: unknown key \`require\` (did you mean \`required\`?)",
        ".reprise/agents/review.md:8:8: \`inputs.why\` must be a map, not \`text\`",
      ]
    `);
    expect(
      problemsOf(null, [{ name: 'a', text: '---\nkind: claude\ninputs: { agent: {} }\n---\n' }]),
    ).toMatchInlineSnapshot(`
      [
        ".reprise/agents/a.md:3:11: an input cannot be named \`agent\`, which is a reserved key of \`<next>\` (choose another name)",
      ]
    `);
    expect(problemsOf({ b: { kind: 'claude', inputs: { task: null } } })).toMatchInlineSnapshot(`
      [
        "agents.b: an input cannot be named \`task\`, which is a reserved key of \`<next>\` (choose another name)",
      ]
    `);
  });

  test('of kind codex report an argument that rules make impossible', () => {
    const args = ['--profile', 'fast'];
    expect(
      problemsOf({ a: { kind: 'codex', args }, b: { kind: 'codex', args, allow: ['Bash(npm test)'] } }),
    ).toEqual([expect.stringContaining('agents.b: `--profile` cannot be used with `allow` or `deny`')]);
  });

  test('are optional', () => {
    expect(parseAgents({ config: null, files: [] }).size).toBe(0);
  });

  test('report all problems at once', () => {
    const config = {
      a: { kind: 'cloude' },
      b: { model: 'x' },
      c: { kind: 'claude', modle: 'x', permissions: 'all' },
      d: { kind: 'acp' },
      e: { kind: 'command', command: ['x'], permissions: 'read-only', script: [] },
      f: { kind: 'scripted' },
      g: { kind: 'claude', allow: ['Bash(', 'Edit(~/x)', 'Bash()'], timeout: 'soon', max_concurrency: 0 },
      h: { kind: 'scripted', script: [{ shout: 'x' }] },
      'no way': { kind: 'claude' },
      i: 'claude',
    };
    expect(problemsOf(config)).toMatchInlineSnapshot(`
      [
        "agents.a: \`kind\` must be claude, codex, acp, command or scripted, not \`cloude\` (did you mean \`claude\`?)",
        "agents.b: \`kind\` must be claude, codex, acp, command or scripted, not empty",
        "agents.c: \`permissions\` must be read-only, edit or full, not \`all\`",
        "agents.c: unknown key \`modle\` (did you mean \`model\`?)",
        "agents.d: \`kind: acp\` needs \`command\` (for example: command: ["gemini", "--acp"])",
        "agents.e: \`permissions\` has no effect for \`kind: command\` (Reprise cannot restrict such a program: remove the key, or use another kind of agent)",
        "agents.e: \`script\` has no effect for \`kind: command\` (write \`kind: scripted\`)",
        "agents.f: \`kind: scripted\` needs \`script\` or \`script_file\` (for example: script: [{ say: "hello" }])",
        "agents.g: \`allow[0]\` \`Bash(\` is not a valid rule: write \`Tool\` or \`Tool(pattern)\`",
        "agents.g: \`allow[1]\` \`Edit(~/x)\` starts with \`~\`, which is not supported: write the absolute path, \`Edit(//home/...)\`",
        "agents.g: \`allow[2]\` \`Bash()\` has empty parentheses: write \`Bash\` to match every use of the tool",
        "agents.g: \`max_concurrency\` must be at least 1, not \`0\`",
        "agents.g: \`timeout\` must be a duration such as \`30s\`, \`5m\` or \`1h30m\`",
        "agents.h: \`script[0]\` must be a step of a script: one of say, think, write, append, delete, replace, run, commit, sleep, ask, fail, limit and result, not a map",
        "agents.no way: \`no way\` is not a valid name for an agent (use letters, digits, \`-\` and \`_\`)",
        "agents.i: it must be a map, not \`claude\`",
      ]
    `);
  });

  test('in files report problems with positions', () => {
    const files = [
      { name: 'one', text: '---\nkind: claude\npermissions: all\nmodle: x\n---\nText\n' },
      { name: 'two', text: 'Just text, no front matter.\n' },
      { name: 'three', text: '---\nkind: claude\nsystem_prompt: a\n---\nb\n' },
      { name: 'four', text: '---\nkind: [\n---\n' },
      { name: 'five', text: '\uFEFF---\r\nkind: claude\r\nallow:\r\n  - "Bash("\r\n---\r\n' },
      { name: 'coder', text: '---\nkind: claude\n---\n' },
    ];
    expect(problemsOf({ coder: { kind: 'claude' } }, files)).toMatchInlineSnapshot(`
      [
        ".reprise/agents/one.md:3:14: \`permissions\` must be read-only, edit or full, not \`all\`",
        ".reprise/agents/one.md:4:1: unknown key \`modle\` (did you mean \`model\`?)",
        ".reprise/agents/two.md:1:1: the file does not start with front matter (start it with the lines \`---\`, \`kind: claude\` and \`---\`, followed by the system prompt)",
        ".reprise/agents/three.md:3:1: the system prompt is given both in \`system_prompt\` and below the front matter (keep one of them)",
        ".reprise/agents/four.md:3:1: not valid YAML: flow sequence in block collection must be sufficiently indented and end with a ] (check the indentation of this line and the one before it)",
        ".reprise/agents/five.md:4:5: \`allow[0]\` \`Bash(\` is not a valid rule: write \`Tool\` or \`Tool(pattern)\`",
        ".reprise/agents/coder.md:1:1: the agent \`coder\` is defined twice: in reprise.yaml and in .reprise/agents/coder.md (remove one of them)",
      ]
    `);
  });
});

test('agents in reprise.yaml report problems with positions', () => {
  const text = `agents:
  coder: { kind: claude, permisions: edit }
  toy: { kind: command }
  no way: { kind: claude }
  old: { kind: codex, script_file: x.yaml, allow: ["Bash()"] }
`;
  const load = () => loadConfig({ file: 'reprise.yaml', text }, agentRules);
  expect(load).toThrowErrorMatchingInlineSnapshot(`
    [RepriseError: reprise.yaml:2:26: unknown key \`permisions\`
       2 |   coder: { kind: claude, permisions: edit }
         |                          ^^^^^^^^^^
      hint: did you mean \`permissions\`?

    reprise.yaml:3:8: \`kind: command\` needs \`command\`
       3 |   toy: { kind: command }
         |        ^^^^^^^^^^^^^^^^^
      hint: for example: command: ["node", "agent.js"]

    reprise.yaml:4:3: \`no way\` is not a valid name for an agent
       4 |   no way: { kind: claude }
         |   ^^^^^^
      hint: use letters, digits, \`-\` and \`_\`

    reprise.yaml:5:52: \`agents.old.allow[0]\` \`Bash()\` has empty parentheses: write \`Bash\` to match every use of the tool
       5 |   old: { kind: codex, script_file: x.yaml, allow: ["Bash()"] }
         |                                                    ^^^^^^^^]
  `);
  const fine = { file: 'reprise.yaml', text: 'agents: { coder: { kind: claude } }' };
  expect(loadConfig(fine, agentRules)).toEqual({ agents: { coder: { kind: 'claude' } } });
});

test('the JSON Schema describes every key', () => {
  const { properties } = agentJsonSchema() as { properties: Record<string, { description?: string }> };
  expect(Object.keys(properties)).toContain('stall_timeout');
  for (const [key, { description }] of Object.entries(properties)) expect(description, key).toMatch(/\.$/);
});
