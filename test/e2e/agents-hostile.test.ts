import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type AgentProject, agentProject } from './agent-project.ts';

/** Text that has an effect wherever it is interpreted. */
const hostile = [
  `"; touch "$MARKS.pwned"; $(touch "$MARKS.pwned") \`touch "$MARKS.pwned"\` '; touch "$MARKS.pwned"; '`,
  '../../x %s %n \\n \u001B[31mRED\u001B[0m \u001B]0;title\u0007 \u009B2J \u202E \u001B[2J',
  '${{ inputs.x }} | & < > * ? ~ !! # -- -rf <b>"]; click s0',
].join('\r\n');

const agent = `
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
const prompt = readFileSync(0, 'utf8');
writeFileSync(process.env.MARKS + '.prompt', prompt);
writeFileSync('evil $(touch "$MARKS.pwned") \`x\` "q" \\u001B[31m\\n.txt', process.env.HOSTILE + '\\n');
mkdirSync('-rf');
writeFileSync('-rf/--help', 'x');
const say = message => console.log(JSON.stringify(message));
const text = process.env.HOSTILE;
say({ type: 'started', sessionId: text, model: text });
say({ type: 'text', text });
say({ type: 'tool-start', id: '1', name: text, title: text, input: { command: text } });
say({ type: 'tool-end', id: '1', ok: false, output: text });
say({ type: 'result', text, output: { text, list: [text, '../../..', '', '.'], nul: 'a\\u0000b' } });
`;

const workflow = `
name: "\\e[31m../../x \`touch $MARKS.pwned\`"
inputs: { x: { type: string } }
env: { FROM: "\${{ inputs.x }}" }
on_failure: continue
steps:
  - id: a
    name: "\\e[31m\\"]; click a"
    agent: writer
    prompt: "Say \${{ inputs.x }}!"
    output: { type: object }
    checks: ["test \${{ inputs.x }} != y", "echo '\${{ inputs.x }}' \\"\${{ inputs.x }}\\""]
  - id: b
    needs: [a]
    run: |
      printf %s \${{ steps.a.outputs.text }} > "$MARKS.bare"
      printf %s "\${{ inputs.x }}" > "$MARKS.double"
      printf %s '\${{ inputs.x }}' > "$MARKS.single"
      printf %s "$FROM" > "$MARKS.env"
      echo "$HOSTILE"
  - id: m
    needs: [a]
    strategy: { matrix: { v: "\${{ steps.a.outputs.list }}" } }
    run: 'printf %s \${{ matrix.v }} > "$MARKS.matrix$REPRISE_WORKER"; echo "$HOSTILE"'
  - { id: argument, needs: [a], agent: argument, prompt: "\${{ steps.a.outputs.text }}" }
  - { id: nul, needs: [a], run: "echo \${{ steps.a.outputs.nul }}" }
  - { id: branch, needs: [a], agent: argument, prompt: x, workspace: { branch: "\${{ inputs.x }}" } }
  - { id: up, needs: [a], agent: argument, prompt: x, workspace: { branch: "../../main" } }
  - { id: base, needs: [a], agent: argument, prompt: x, workspace: { base: "--help" } }
  - { id: bad, needs: [a], agent: bad, prompt: x }
  - { id: land, needs: [a], land: "\${{ inputs.x }}", verify: "test -f \${{ inputs.x }}" }
`;

const hostileProject = () =>
  agentProject({
    config: `
  writer: { kind: command, command: [node, agent.mjs] }
  argument: { kind: command, command: [sh, -c, 'printf %s "$1" > "$MARKS.argument"', x, "{prompt}"] }
  bad: { kind: command, command: [sh, -c, 'echo "$HOSTILE" >&2; exit 1'] }
`,
    files: { 'agent.mjs': agent, 'w.yaml': workflow },
  });

/** Control characters that a terminal obeys, except line feeds. */
const obeyed = /(?!\n)[\p{Cc}\u061C\u200B\u200E\u200F\u202A-\u202E\u2060\u2066-\u2069\uFEFF]/u;
const expectHarmless = (text: string, where = '') =>
  expect(
    text.split('\n').filter(line => obeyed.test(line)),
    where,
  ).toEqual([]);

const wasRun = ({ root }: AgentProject) => readdirSync(`${root}/.git`).includes('marks.pwned');

describe('hostile text', () => {
  it('is never interpreted in inputs, outputs, names and matrix values', async () => {
    const project = hostileProject();
    const env = { HOSTILE: hostile };
    const before = project.checkout();
    const { stderr, stdout } = await project.cli(['run', 'w.yaml', '--verbose', '-i', `x=${hostile}`], {
      env,
    });
    expect(stderr).toContain('a value for a script contains a NUL character');
    expect(project.told('prompt')).toBe(`Say ${hostile}!`);
    for (const name of ['bare', 'double', 'single', 'env', 'argument', 'matrix0'])
      expect(project.told(name)).toBe(hostile);
    expect(project.told('matrix1')).toBe('../../..');
    expectHarmless(stderr);
    expectHarmless(stdout);
    expect(wasRun(project)).toBe(false);
    expect(project.checkout()).toBe(before);
    expect(project.git('for-each-ref', '--format=%(refname)', 'refs/heads').split('\n').toSorted()).toEqual(
      expect.arrayContaining(['refs/heads/main']),
    );
    const steps = Object.fromEntries(
      JSON.parse((await project.cli(['show', '--json'])).stdout).steps.map(
        ({ path, error }: { path: string; error?: { code: string } }) => [path, error?.code],
      ),
    );
    expect(steps).toMatchObject({ a: undefined, b: undefined, m: undefined, argument: undefined });
    for (const path of ['nul', 'branch', 'up', 'base', 'bad', 'land'])
      expect(steps[path], path).toEqual(expect.any(String));
  });

  it('never controls the terminal in any view, and stays unchanged in JSON', async () => {
    const project = hostileProject();
    const env = { HOSTILE: hostile };
    await project.cli(['run', 'w.yaml', '--quiet', '-i', `x=${hostile}`], { env });
    const [id = ''] = (await project.cli(['list', '--json'])).stdout.match(/(?<="id":")\w+/) ?? [];
    const views = [
      ['show'],
      ['logs'],
      ['logs', '--raw'],
      ['logs', id, 'a'],
      ['list'],
      ['history'],
      ['history', '--raw'],
      ['graph', 'w.yaml'],
      ['graph', 'w.yaml', '--mermaid'],
      ['diff', id, 'a', '--stat'],
      ['validate', 'w.yaml'],
      ['gc', '--dry-run'],
      ['land', id, 'a'],
      ['show', '--json'],
      ['logs', '--json'],
      ['history', '--json'],
      ['replay', '--json'],
      ['doctor'],
    ];
    for (const args of views) {
      const { stdout, stderr } = await project.cli(args, { env });
      expect(stdout + stderr, args.join(' ')).not.toBe('');
      expectHarmless(stdout, args.join(' '));
      expectHarmless(stderr, args.join(' '));
    }
    const mermaid = (await project.cli(['graph', 'w.yaml', '--mermaid'])).stdout;
    expect(mermaid).not.toMatch(/^\s*click/m);
    const raw = (await project.cli(['logs', id, 'b', '--json'])).stdout.split('\n').filter(Boolean);
    expect(raw.map(line => JSON.parse(line).line).join('\n')).toContain('\u001B[31mRED');
    expect(wasRun(project)).toBe(false);
    expect(project.git('ls-tree', '-r', '--name-only', '-z', 'main').split('\0')).toContain('-rf/--help');
  });

  it('reaches the agent byte for byte as a prompt from the command line', async () => {
    const project = agentProject({
      agents: { keeper: 'printf %s "$prompt" > "$MARKS.prompt$REPRISE_WORKER"' },
    });
    const { code } = await project.cli([
      'run',
      '--agent',
      'keeper',
      '--prompt',
      hostile,
      '--concurrency',
      '2',
    ]);
    expect(code).toBe(0);
    expect([project.told('prompt0'), project.told('prompt1')]).toEqual([hostile, hostile]);
    expect(wasRun(project)).toBe(false);
  });
});
