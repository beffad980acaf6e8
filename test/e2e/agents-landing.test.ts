import { describe, expect, it } from 'vitest';
import { agentProject } from './agent-project.ts';
import { parseLines, until } from './run-inline.ts';

/** The agent runs its prompt as a script. A step before the landing runs `$MARKS.between`. */
const landing = () =>
  agentProject({
    agents: { hands: 'eval "$prompt"' },
    files: {
      'w.yaml': `
inputs: { do: { type: string }, verify: { type: string, default: "true" } }
steps:
  - { id: fix, agent: hands, prompt: "\${{ inputs.do }}" }
  - { id: between, needs: [fix], workspace: none, run: '[ ! -e "$MARKS.between" ] || sh -e "$MARKS.between"' }
  - { id: land, needs: [fix, between], land: main, from: fix, env: { VERIFY: "\${{ inputs.verify }}" }, verify: 'sh -c "$VERIFY"' }
`,
    },
  });

describe('a land step', () => {
  it.each([
    ['lands the work', 'echo new > b.txt', 'landed', 'new\n'],
    ['reports that there is nothing to land', 'true', 'nothing-to-land', ''],
  ])('%s', async (_, script, outcome, text) => {
    const project = landing();
    const { code, output } = await project.outcome(['run', 'w.yaml', '-i', `do=${script}`]);
    expect({ code, output }).toMatchObject({ code: 0, output: { land: { outcome, onto: 'main' } } });
    expect(project.read('b.txt')).toBe(text);
    expect(project.git('status', '--porcelain')).toBe('');
  });

  it.each([
    {
      name: 'conflicts',
      between: 'echo mine > b.txt; git add b.txt; git commit --quiet --message mine',
      script: 'echo new > b.txt',
      verify: 'true',
      outcome: 'conflict',
      says: 'onto main: conflicts in b.txt',
      file: ['b.txt', 'mine\n'],
    },
    {
      name: 'fails the verification',
      between: 'true',
      script: 'echo new > b.txt',
      verify: 'echo no good; exit 1',
      outcome: 'verify-failed',
      says: 'no good',
      file: ['b.txt', ''],
    },
    {
      name: 'would overwrite a change in the checkout',
      between: 'echo mine >> a.txt',
      script: 'echo new > a.txt',
      verify: 'true',
      outcome: 'main-checkout-in-the-way',
      says: 'would overwrite uncommitted changes',
      file: ['a.txt', 'one\nmine\n'],
    },
    {
      name: 'would overwrite an untracked file in the checkout',
      between: 'echo mine > b.txt',
      script: 'echo new > b.txt',
      verify: 'true',
      outcome: 'main-checkout-in-the-way',
      says: 'would overwrite uncommitted changes',
      file: ['b.txt', 'mine\n'],
    },
  ])(
    'exits with 6 and loses nothing if the work $name',
    async ({ between, script, verify, outcome, says, file }) => {
      const project = landing();
      project.tell('between', between);
      const args = ['run', 'w.yaml', '-i', `do=${script}`, '-i', `verify=${verify}`];
      const failed = await project.cli(args);
      expect(failed.code).toBe(6);
      expect(failed.stderr).toContain(says);
      const [run = ''] = (await project.cli(['list', '--json'])).stdout.match(/(?<="id":")\w+/) ?? [];
      // The suggested command is on its own line.
      expect(failed.stderr.split('\n').map(line => line.trim())).toContain(
        `to retry: reprise land ${run} fix`,
      );
      const [name = '', text] = file;
      expect(project.read(name)).toBe(text);
      const head = project.git('rev-parse', 'main');
      const again = await project.cli(['land', run, 'fix', '--verify', verify, '--json']);
      expect({ code: again.code, ...parseLines(again.stdout)[0] }).toMatchObject({ code: 6, outcome });
      expect(project.git('rev-parse', 'main')).toBe(head);
      expect(project.read(name)).toBe(text);
      expect(project.git('log', '--format=%s', `main..reprise/w/${run}/fix`)).toContain('fix: ');
    },
  );

  it('keeps uncommitted changes that do not collide with the work', async () => {
    const project = landing();
    project.tell('between', 'echo mine >> a.txt; echo mine > untracked.txt');
    expect((await project.outcome(['run', 'w.yaml', '-i', 'do=echo new > b.txt'])).code).toBe(0);
    expect(project.read('b.txt')).toBe('new\n');
    expect(project.git('status', '--porcelain')).toBe(' M a.txt\n?? untracked.txt');
  });

  it('moves only the branch if it is not checked out', async () => {
    const project = landing();
    project.git('checkout', '--quiet', '--detach');
    const before = project.checkout();
    expect((await project.outcome(['run', 'w.yaml', '-i', 'do=echo new > b.txt'])).code).toBe(0);
    expect(project.checkout()).toBe(before);
    expect(project.git('show', 'main:b.txt')).toBe('new');
  });
});

it('`reprise land` asks for the target branch if the run started on a detached HEAD', async () => {
  const project = landing();
  project.git('checkout', '--quiet', '--detach');
  const { run } = await project.outcome(['run', '--agent', 'hands', '--prompt', 'echo new > b.txt']);
  const refused = await project.cli(['land']);
  expect(refused.code).toBe(6);
  expect(refused.stderr).toContain('name the target branch: --onto main');
  expect((await project.cli(['land', run, '--onto', 'main'])).code).toBe(0);
  expect(project.git('show', 'main:b.txt')).toBe('new');
});

it('two parallel runs of one workflow use separate folders, and both land', async () => {
  const project = agentProject({
    agents: {
      both: `
pwd >> "$MARKS"
echo "$REPRISE_RUN" > "by-$REPRISE_RUN.txt"
until [ "$(wc -l < "$MARKS")" -ge 2 ]; do sleep 0.02; done
`,
    },
    files: {
      'w.yaml': `
steps:
  - { id: fix, agent: both, prompt: x }
  - { id: land, needs: [fix], land: main, verify: 'touch "$MARKS.verifying"; test -f a.txt' }
`,
    },
  });
  const runs = [project.begin(['run', 'w.yaml', '--json']), project.begin(['run', 'w.yaml', '--json'])];
  await until(() => project.marks().length === 2);
  const ended = await Promise.all(runs.map(run => run.ended));
  expect(ended.map(({ code }) => code)).toEqual([0, 0]);
  expect(new Set(project.marks()).size).toBe(2);
  expect(project.git('log', '--format=%s', 'main').split('\n')).toHaveLength(3);
  expect(project.git('ls-tree', '--name-only', 'main').match(/by-\w+\.txt/g)).toHaveLength(2);
  expect(project.git('status', '--porcelain')).toBe('');
  expect(project.git('rev-list', '--merges', 'main')).toBe('');
});

describe('a step that selects the best of three copies', () => {
  const bestOf = () =>
    agentProject({
      agents: {
        one: `
echo "$REPRISE_STEP $REPRISE_WORKER" >> "$MARKS"
case $REPRISE_STEP in
  fix) echo "by $REPRISE_WORKER" > result.txt; [ "$REPRISE_WORKER" != 1 ] || echo good >> result.txt;;
  next) cat result.txt; echo more >> result.txt;;
esac`,
      },
      files: {
        'w.yaml': `
steps:
  - id: fix
    agent: one
    prompt: x
    concurrency: 3
    select: { gates: ['echo gate >> "$MARKS"; grep -q good result.txt'] }
  - { id: next, needs: [fix], agent: one, prompt: x }
  - { id: see, needs: [fix], run: 'echo see >> "$MARKS"; echo "text=$(tr "\\n" " " < result.txt)" >> "$REPRISE_OUTPUT"' }
outputs: { fix: "\${{ steps.fix.outputs.selected }}", next: "\${{ steps.next.outputs.text }}", see: "\${{ steps.see.outputs.text }}" }
`,
      },
    });

  it('selects the copy that passes the gate, and later steps start from its work', async () => {
    const project = bestOf();
    const before = project.checkout();
    const { code, output, run } = await project.outcome(['run', 'w.yaml']);
    expect({ code, output }).toEqual({ code: 0, output: { fix: 1, next: 'by 1\ngood', see: 'by 1 good ' } });
    expect(project.checkout()).toBe(before);
    const { stdout } = await project.cli(['show']);
    expect(stdout).toMatch(/fix:1 +selected .*worker_1\n/);
    for (const loser of [0, 2])
      expect(stdout).toMatch(new RegExp(`fix:${loser} +not selected .*worker_${loser}\\n`));
    await project.cli(['land', run]);
    await project.cli(['gc']);
    expect(project.read('result.txt')).toBe('by 1\ngood\nmore\n');
    for (const loser of [0, 2])
      expect(project.git('show', `reprise/w/${run}/fix/worker_${loser}:result.txt`)).toBe(`by ${loser}`);
  });

  it('replays with the same output without running anything', async () => {
    const project = bestOf();
    const { stdout } = await project.cli(['run', 'w.yaml']);
    const marks = project.marks();
    expect(marks.toSorted()).toEqual(['fix 0', 'fix 1', 'fix 2', 'gate', 'gate', 'gate', 'next ', 'see']);
    const replayed = await project.cli(['replay']);
    expect(replayed).toMatchObject({ code: 0, stdout });
    expect(project.marks()).toEqual(marks);
  });
});
