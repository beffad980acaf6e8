import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createProject, type TestProject } from '../e2e/run-inline.ts';

interface Side {
  readonly prompt?: string;
  readonly script?: string;
  readonly checks?: readonly string[];
}

type Name = 'left' | 'right';

const other = (name: Name): Name => (name === 'left' ? 'right' : 'left');

const workflow = (name: Name, { prompt = `Write down ${name}.`, checks = ['true'] }: Side = {}) => `
".reprise/workflows/${name}.yaml" = '''
name: ${name}
steps:
  - { id: write, agent: ${name}, prompt: "${prompt}", checks: ${JSON.stringify(checks)} }
  - { id: land, needs: [write], land: main, from: write }
'''`;

const agent = (name: Name, { script = `echo ${name} > ${name}.txt` }: Side = {}) => `
  ${name}: { kind: scripted, script: [{ run: "${script}" }, { say: Wrote it down. }] }`;

/** Two parallel runs that land on one main, each with its own workflow and agent. */
const caseOf = (sides: Partial<Record<Name, Side>> = {}) => `
[multi]
steps = [
  { name = "setup", command = "shell", script = "begin.sh" },
  { name = "left", command = "run", args = ["left"], concurrent_group = "both" },
  { name = "right", command = "run", args = ["right"], concurrent_group = "both" },
]

[files]
"reprise.yaml" = '''
agents:${agent('left', sides.left)}${agent('right', sides.right)}
'''${workflow('left', sides.left)}${workflow('right', sides.right)}

[scripts]
"begin.sh" = "git commit --quiet --allow-empty -m Began"
`;

const file = 'cases/pair/pair.toml';

async function recordPair(): Promise<{ readonly project: TestProject; readonly first: Name }> {
  const project = createProject({ files: { [file]: caseOf() }, git: true });
  expect(await project.run(['test', 'pair', '--record'])).toMatchObject({ code: 0 });
  return { project, first: landingOrder(project)[0] as Name };
}

const recordStep = (project: TestProject, step: string) =>
  project.run(['test', 'pair', '--record', '--step', step]);

/** Returns the contents of all files of the case except the hand-written one, by path. */
function recordedFiles({ root }: TestProject): Readonly<Record<string, string>> {
  const folder = join(root, 'cases', 'pair');
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && !entry.name.endsWith('.toml'))
    .map(entry => join(entry.parentPath, entry.name));
  return Object.fromEntries(
    files.map(path => [path.slice(folder.length + 1), readFileSync(path, 'latin1')] as const).sort(),
  );
}

const score = (project: TestProject) =>
  project
    .read('cases/pair/pair.score')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line));

const order = (project: TestProject): readonly string[] =>
  score(project)
    .slice(1)
    .flatMap(({ lane, op }) => [op].flat().map(name => `${lane} ${name}`));

const landingOrder = (project: TestProject): readonly string[] =>
  order(project)
    .filter(line => line.endsWith(' land.move'))
    .map(line => line.split('/')[0] as string);

/** Returns the names of all files that differ or exist on one side only. */
const changed = (before: Readonly<Record<string, string>>, after: Readonly<Record<string, string>>) =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter(name => before[name] !== after[name])
    .sort();

describe('a command that is recorded again', () => {
  it.each(['first', 'second'])(
    'keeps its place in the order if it landed %s and nothing has changed',
    async which => {
      const { project, first } = await recordPair();
      const live = which === 'first' ? first : other(first);
      const [before, orderBefore, [headBefore]] = [recordedFiles(project), order(project), score(project)];
      expect(await recordStep(project, live)).toMatchObject({ code: 0, stderr: '' });
      const after = recordedFiles(project);
      const names = changed(before, after);
      expect(names).toContain(`pair__${live}.vcr`);
      expect(names.filter(name => !name.includes(live) && name !== 'pair.score')).toEqual([]);
      expect(order(project)).toEqual(orderBefore);
      const [headAfter] = score(project);
      expect(headAfter.main).toEqual(headBefore.main);
      expect(headAfter.witness).toEqual(headBefore.witness);
      expect(after['pair.snap']).toBe(before['pair.snap']);
      expect(await project.run(['test', 'pair'])).toMatchObject({ code: 0 });
    },
  );

  it('changes only its own files, even with another prompt and other work', async () => {
    const { project, first } = await recordPair();
    const second = other(first);
    const before = recordedFiles(project);
    const [headBefore] = score(project);
    const side = { prompt: `Please write ${second}.`, script: `echo anew > ${second}.txt` };
    project.write({ [file]: caseOf({ [second]: side }) });
    expect((await project.run(['test', 'pair'])).code).toBe(5);
    expect(await recordStep(project, second)).toMatchObject({ code: 0 });
    const after = recordedFiles(project);
    const names = changed(before, after);
    expect(names).toContain(`sessions/${second}.${second}.write.0.jsonl`);
    expect(names.filter(name => name.includes(first))).toEqual([]);
    const blobs = (files: typeof before) => Object.keys(files).filter(name => name.startsWith('blobs/'));
    expect(blobs(after)).toHaveLength(blobs(before).length);
    expect(blobs(after)).not.toEqual(blobs(before));
    expect(score(project)[0].main.commit).not.toBe(headBefore.main.commit);
    expect(await project.run(['test', 'pair'])).toMatchObject({ code: 0 });
  });

  // The other command observes the commit, and with it the second in which it was made. The additional check may take the
  // clock into the next one.
  it('may have additional effects that no other command observes', { retry: 3 }, async () => {
    const { project, first } = await recordPair();
    const before = recordedFiles(project);
    project.write({ [file]: caseOf({ [first]: { checks: ['true', 'test -s *.txt'] } }) });
    expect(await recordStep(project, first)).toMatchObject({ code: 0 });
    const names = changed(before, recordedFiles(project));
    expect(names).toContain(`sessions/check-2.${first}.write.0.jsonl`);
    expect(names.filter(name => name.includes(other(first)))).toEqual([]);
    expect(landingOrder(project)).toEqual([first, other(first)]);
    expect(await project.run(['test', 'pair'])).toMatchObject({ code: 0 });
  });

  it('is refused, without touching a file, if another command no longer matches its recording', async () => {
    const { project, first } = await recordPair();
    const second = other(first);
    const before = recordedFiles(project);
    const script = `echo ${first} > ${first}.txt; echo mine > ${second}.txt`;
    project.write({ [file]: caseOf({ [first]: { script } }) });
    const { code, stdout } = await recordStep(project, first);
    expect(code).toBe(5);
    expect(stdout).toContain(
      `step ${second} no longer matches its recording, because step ${first} behaves differently`,
    );
    expect(stdout).toContain('both use ref:main: land.move');
    expect(stdout).toContain('record the whole case: reprise test pair --record');
    expect(recordedFiles(project)).toEqual(before);
    expect(readdirSync(join(project.root, 'cases', 'pair')).filter(name => name.startsWith('.'))).toEqual([]);
  });
});

describe('recording one command is refused', () => {
  const byHand = `
[worker_test]
num_workers = 1
command = "run"
[[worker_test.workers]]
name = "worker-a"
args = ["left"]
sessions = []
`;

  it.each([
    [
      'if the case has no command of that name, with the nearest name as a hint',
      ['pair', '--record', '--step', 'lef'],
      2,
    ],
    [
      'if no command has a similar name, with all names as a hint',
      ['pair', '--record', '--step', 'worker'],
      2,
    ],
    ['if the command is a shell script', ['pair', '--record', '--step', 'setup'], 2],
    ['if the case was never recorded', ['pair', '--record', '--step', 'left'], 1],
    ['if the case is a [worker_test]', ['hand', '--record', '--step', 'worker-a'], 2],
    ['without --record', ['pair', '--step', 'left'], 2],
    ['if several cases are selected', ['--record', '--step', 'left'], 2],
  ])('%s', async (_, args, code) => {
    const project = createProject({ files: { [file]: caseOf(), 'cases/hand/hand.toml': byHand }, git: true });
    const result = await project.run(['test', ...args]);
    expect(result.code).toBe(code);
    const shown = `${result.stdout}${result.stderr}`
      .replace(/^✗ .*\n\n/, '')
      .replace(/\d+(\.\d+)?m?s\b/g, '<time>');
    expect(shown).toMatchSnapshot();
    expect(recordedFiles(project)).toEqual({});
  });
});
