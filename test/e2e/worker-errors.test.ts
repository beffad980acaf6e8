import { describe, expect, it } from 'vitest';
import { until } from './run-inline.ts';
import { saidBy, type WorkerProject, type WorkerProjectOptions, workerProject } from './worker-project.ts';

const good = 'echo good > good.txt; echo "<next>land</next>"';
const tasks = {
  first: '---\npriority: P0\nagent: strange\n---\n\n# Goes wrong\n',
  second: '# Goes well\n',
};

/** Whatever becomes of the first task, the second is done. */
const oneGoesWrong = (strange: string, { agents = {}, ...more }: WorkerProjectOptions = {}): WorkerProject =>
  workerProject({ agents: { implement: good, strange, ...agents }, tasks, ...more });

async function workedOff(project: WorkerProject) {
  const { code, stderr } = await project.worker(['--until-idle']).ended;
  const claims = await project.inStore(store => store.claims.list());
  return {
    code,
    said: saidBy(project, stderr),
    landed: project.landed(),
    claim: claims.find(({ task }) => task === 'first'),
  };
}

describe('a worker reports, lets the task go and goes on with the next', () => {
  it('after an agent that hands over to one that there is not', async () => {
    const project = oneGoesWrong('echo asked >> $MARKS; echo half > half.txt; echo "<next>reviewer</next>"', {
      agents: { review: good },
    });
    const { code, said, landed, claim } = await workedOff(project);
    expect(said).toMatchInlineSnapshot(`
      "worker-1  started on branch main
      worker-1  picked up first, starting agent strange (P0, the first of 2 ready tasks; the task names the agent)
      worker-1  agent strange (command) started
      worker-1  | <next>reviewer</next>
      worker-1  agent strange (command) started
      worker-1  | <next>reviewer</next>
      worker-1  agent strange (command) started
      worker-1  | <next>reviewer</next>
      worker-1  saved 1 file, +1 -0
      worker-1  failed: the agent did not end with a valid \`<next>\` instruction after 2 corrections: There is no agent \`reviewer\`; did you mean \`review\`?
      worker-1  gave up on first: the agent did not end with a valid \`<next>\` instruction after 2 corrections: There is no agent \`reviewer\`; did you mean \`review\`?; its work is on reprise/parked/first
      worker-1  hint: read its messages: reprise logs; explain \`<next>\` in its prompt, or raise \`workers.corrections\`
      worker-1  picked up second, starting agent implement (P2, the only ready task; the default agent)
      worker-1  agent implement (command) started
      worker-1  | <next>land</next>
      worker-1  implement -> land
      worker-1  saved 2 files, +5 -0
      worker-1  landing on main
      worker-1  landed <commit> Goes well on main (1 commit rebased onto <commit>, fast-forward)
      worker-1  nothing to do: no task is ready: 1 failed, 1 landed
      worker-1  done: no task is ready and no worker is busy
      "
    `);
    expect([code, landed, claim?.state, project.marks()]).toEqual([
      1,
      ['second'],
      'failed',
      ['asked', 'asked', 'asked'],
    ]);
    expect(project.git('show', 'reprise/parked/first:half.txt')).toBe('half');
  });

  it('after an agent that leaves out what the next one needs', async () => {
    const project = oneGoesWrong('echo "<next>agent: review</next>"', {
      config: '  review: { kind: command, command: [sh, -c, exit], inputs: { pull_request: {} } }',
    });
    const { code, said, landed, claim } = await workedOff(project);
    expect(said).toMatchInlineSnapshot(`
      "worker-1  started on branch main
      worker-1  picked up first, starting agent strange (P0, the first of 2 ready tasks; the task names the agent)
      worker-1  agent strange (command) started
      worker-1  | <next>agent: review</next>
      worker-1  agent strange (command) started
      worker-1  | <next>agent: review</next>
      worker-1  agent strange (command) started
      worker-1  | <next>agent: review</next>
      worker-1  failed: the agent did not end with a valid \`<next>\` instruction after 2 corrections: The agent \`review\` needs the argument \`pull_request\`.
      worker-1  gave up on first: the agent did not end with a valid \`<next>\` instruction after 2 corrections: The agent \`review\` needs the argument \`pull_request\`.
      worker-1  hint: read its messages: reprise logs; explain \`<next>\` in its prompt, or raise \`workers.corrections\`
      worker-1  picked up second, starting agent implement (P2, the only ready task; the default agent)
      worker-1  agent implement (command) started
      worker-1  | <next>land</next>
      worker-1  implement -> land
      worker-1  saved 2 files, +5 -0
      worker-1  landing on main
      worker-1  landed <commit> Goes well on main (1 commit rebased onto <commit>, fast-forward)
      worker-1  nothing to do: no task is ready: 1 failed, 1 landed
      worker-1  done: no task is ready and no worker is busy
      "
    `);
    expect([code, landed, claim?.state]).toEqual([1, ['second'], 'failed']);
  });

  it('after an agent whose last words cannot be understood', async () => {
    const project = oneGoesWrong(`echo '<next>{"agent": [</next>'`);
    const { code, said, landed, claim } = await workedOff(project);
    expect(said).toMatchInlineSnapshot(`
      "worker-1  started on branch main
      worker-1  picked up first, starting agent strange (P0, the first of 2 ready tasks; the task names the agent)
      worker-1  agent strange (command) started
      worker-1  | <next>{"agent": [</next>
      worker-1  agent strange (command) started
      worker-1  | <next>{"agent": [</next>
      worker-1  agent strange (command) started
      worker-1  | <next>{"agent": [</next>
      worker-1  failed: the agent did not end with a valid \`<next>\` instruction after 2 corrections: The \`<next>\` tag cannot be read as YAML: Flow sequence in block collection must be sufficiently indented and end with a ].
      worker-1  gave up on first: the agent did not end with a valid \`<next>\` instruction after 2 corrections: The \`<next>\` tag cannot be read as YAML: Flow sequence in block collection must be sufficiently indented and end with a ].
      worker-1  hint: read its messages: reprise logs; explain \`<next>\` in its prompt, or raise \`workers.corrections\`
      worker-1  picked up second, starting agent implement (P2, the only ready task; the default agent)
      worker-1  agent implement (command) started
      worker-1  | <next>land</next>
      worker-1  implement -> land
      worker-1  saved 2 files, +5 -0
      worker-1  landing on main
      worker-1  landed <commit> Goes well on main (1 commit rebased onto <commit>, fast-forward)
      worker-1  nothing to do: no task is ready: 1 failed, 1 landed
      worker-1  done: no task is ready and no worker is busy
      "
    `);
    expect([code, landed, claim?.state]).toEqual([1, ['second'], 'failed']);
  });

  it('after an agent that crashes', async () => {
    const project = oneGoesWrong('echo "no idea" >&2; exit 1');
    const { code, said, landed, claim } = await workedOff(project);
    expect(said).toMatchInlineSnapshot(`
      "worker-1  started on branch main
      worker-1  picked up first, starting agent strange (P0, the first of 2 ready tasks; the task names the agent)
      worker-1  agent strange (command) started
      worker-1  failed: the agent exited with code 1 without a result
      worker-1  gave up on first: the agent exited with code 1 without a result
      worker-1  hint: run \`sh agents/strange.sh\` by hand to see its output. The whole output is in <root>/.reprise/state/logs/<run>/work.1.0.session.log
      worker-1  picked up second, starting agent implement (P2, the only ready task; the default agent)
      worker-1  agent implement (command) started
      worker-1  | <next>land</next>
      worker-1  implement -> land
      worker-1  saved 2 files, +5 -0
      worker-1  landing on main
      worker-1  landed <commit> Goes well on main (1 commit rebased onto <commit>, fast-forward)
      worker-1  nothing to do: no task is ready: 1 failed, 1 landed
      worker-1  done: no task is ready and no worker is busy
      "
    `);
    expect([code, landed, claim?.state]).toEqual([1, ['second'], 'failed']);
  });

  it('after an agent that gives up', async () => {
    const project = oneGoesWrong('echo "<next>give-up: there is no such file</next>"');
    const { code, said, landed, claim } = await workedOff(project);
    expect(said).toMatchInlineSnapshot(`
      "worker-1  started on branch main
      worker-1  picked up first, starting agent strange (P0, the first of 2 ready tasks; the task names the agent)
      worker-1  agent strange (command) started
      worker-1  | <next>give-up: there is no such file</next>
      worker-1  strange -> give-up: there is no such file
      worker-1  failed: strange gave up: there is no such file
      worker-1  gave up on first: strange gave up: there is no such file
      worker-1  hint: change the text of the task, or retry it unchanged: reprise tasks release
      worker-1  picked up second, starting agent implement (P2, the only ready task; the default agent)
      worker-1  agent implement (command) started
      worker-1  | <next>land</next>
      worker-1  implement -> land
      worker-1  saved 2 files, +5 -0
      worker-1  landing on main
      worker-1  landed <commit> Goes well on main (1 commit rebased onto <commit>, fast-forward)
      worker-1  nothing to do: no task is ready: 1 failed, 1 landed
      worker-1  done: no task is ready and no worker is busy
      "
    `);
    expect([code, landed, claim?.state]).toEqual([1, ['second'], 'failed']);
  });

  it('after work that does not pass the verification, however often it is mended', async () => {
    const project = oneGoesWrong('echo asked >> $MARKS; echo bad > bad.txt; echo "<next>land</next>"', {
      config: `workers: { verify: "if [ -e bad.txt ]; then echo bad.txt is bad; exit 1; fi" }`,
    });
    const { code, said, landed, claim } = await workedOff(project);
    expect(said).toMatchInlineSnapshot(`
      "worker-1  started on branch main
      worker-1  picked up first, starting agent strange (P0, the first of 2 ready tasks; the task names the agent)
      worker-1  agent strange (command) started
      worker-1  | <next>land</next>
      worker-1  strange -> land
      worker-1  saved 2 files, +2 -0
      worker-1  landing on main
      worker-1  not landed on main: verification failed: bad.txt is bad
      worker-1  agent strange (command) started
      worker-1  | <next>land</next>
      worker-1  saved 2 files, +2 -0
      worker-1  landing on main
      worker-1  not landed on main: verification failed: bad.txt is bad
      worker-1  agent strange (command) started
      worker-1  | <next>land</next>
      worker-1  saved 2 files, +2 -0
      worker-1  landing on main
      worker-1  not landed on main: verification failed: bad.txt is bad
      worker-1  parked on reprise/parked/first: verification failed after rebasing onto main: bad.txt is bad
      worker-1  failed: first could not be landed on main: verification failed after rebasing onto main
      worker-1  picked up second, starting agent implement (P2, the only ready task; the default agent)
      worker-1  agent implement (command) started
      worker-1  | <next>land</next>
      worker-1  implement -> land
      worker-1  saved 2 files, +5 -0
      worker-1  landing on main
      worker-1  landed <commit> Goes well on main (1 commit rebased onto <commit>, fast-forward)
      worker-1  nothing to do: no task is ready: 1 parked, 1 landed
      worker-1  done: no task is ready and no worker is busy
      "
    `);
    expect([code, landed, claim?.state, claim?.branch]).toEqual([
      6,
      ['second'],
      'parked',
      'reprise/parked/first',
    ]);
    expect(project.git('show', 'reprise/parked/first:bad.txt')).toBe('bad');
    expect(project.marks()).toEqual(['asked', 'asked', 'asked']);
  });

  it('after a conflict that nobody solves', async () => {
    const project = oneGoesWrong(`
      echo asked >> $MARKS
      until [ -e $MARKS.gate ]; do sleep 0.02; done
      grep -q '<<<<<<<' a.txt || echo theirs > a.txt
      echo "<next>land</next>"`);
    const worker = workedOff(project);
    await until(() => project.marks().length === 1);
    project.write({ 'a.txt': 'ours\n' });
    project.git('commit', '--quiet', '--all', '--message', 'Ours');
    project.tell('gate', '');
    const { code, said, landed, claim } = await worker;
    expect(said).toMatchInlineSnapshot(`
      "worker-1  started on branch main
      worker-1  picked up first, starting agent strange (P0, the first of 2 ready tasks; the task names the agent)
      worker-1  agent strange (command) started
      worker-1  | <next>land</next>
      worker-1  strange -> land
      worker-1  saved 2 files, +2 -1
      worker-1  landing on main
      worker-1  reprise/worker/<run>/work conflicts with main: cannot rebase "Goes wrong" onto main: conflicts in a.txt
      worker-1  agent strange (command) started
      worker-1  | <next>land</next>
      worker-1  agent strange (command) started
      worker-1  | <next>land</next>
      worker-1  agent strange (command) started
      worker-1  | <next>land</next>
      worker-1  parked on reprise/parked/first: conflict markers are left in a.txt
      worker-1  failed: first could not be landed on main: conflict markers are left in a.txt
      worker-1  picked up second, starting agent implement (P2, the only ready task; the default agent)
      worker-1  agent implement (command) started
      worker-1  | <next>land</next>
      worker-1  implement -> land
      worker-1  saved 2 files, +5 -0
      worker-1  landing on main
      worker-1  landed <commit> Goes well on main (1 commit rebased onto <commit>, fast-forward)
      worker-1  nothing to do: no task is ready: 1 parked, 1 landed
      worker-1  done: no task is ready and no worker is busy
      "
    `);
    expect([code, landed, claim?.state, claim?.branch]).toEqual([
      6,
      ['second'],
      'parked',
      'reprise/parked/first',
    ]);
    expect(project.git('show', 'reprise/parked/first:a.txt')).toBe('theirs');
    expect(project.read('a.txt')).toBe('ours\n');
  });

  it('and lands what was corrected in time', async () => {
    const project = oneGoesWrong(`
      echo asked >> $MARKS
      [ "$(grep -c . $MARKS)" = 1 ] && { echo "<next>lnd</next>"; exit; }
      echo right > right.txt
      echo "<next>land</next>"`);
    const { code, landed, claim } = await workedOff(project);
    expect([code, landed, claim?.state]).toEqual([0, ['first', 'second'], 'landed']);
    expect(project.marks()).toEqual(['asked', 'asked']);
  });
});

it('a dispatcher that fails is not asked again and again, but when something has changed', async () => {
  const project = workerProject({
    agents: { implement: good, dispatch: 'echo asked >> $MARKS; exit 1' },
    tasks: { one: '# Do it\n' },
    config: 'workers: { dispatch: agent }',
  });
  const worker = project.worker();
  await until(() => worker.stderr.includes('sleeping'));
  expect(project.marks()).toEqual(['asked']);
  project.write({ 'issues/two.md': '# Another\n' });
  project.git('add', '--all');
  project.git('commit', '--quiet', '--message', 'Another');
  await until(() => worker.stderr.split('sleeping').length === 3);
  expect(project.marks()).toEqual(['asked', 'asked']);
  worker.kill('SIGINT');
  expect(saidBy(project, (await worker.ended).stderr)).toMatchInlineSnapshot(`
    "worker-1  started on branch main
    worker-1  agent dispatch (command) started
    worker-1  failed: the agent exited with code 1 without a result
    worker-1  sleeping: the dispatcher has failed
    worker-1  woke up: the branch moved
    worker-1  agent dispatch (command) started
    worker-1  failed: the agent exited with code 1 without a result
    worker-1  sleeping: the dispatcher has failed
    worker-1  stopped by request
    "
  `);
});

describe('tasks that cannot be read', () => {
  it('are told of once, and the others are done', async () => {
    const project = workerProject({
      agents: { implement: good },
      tasks: { broken: '---\npriority: P9\nneeds: [\n---\n# Broken\n', fine: '# Fine\n' },
    });
    const { code, stderr } = await project.worker(['--until-idle']).ended;
    expect(saidBy(project, stderr)).toMatchInlineSnapshot(`
      "worker-1  started on branch main
      worker-1  issues/broken.md:4:1: not valid YAML: flow sequence in block collection must be sufficiently indented and end with a ]
         4 | 
           | ^
        hint: check the indentation of this line and the one before it
      worker-1  picked up fine, starting agent implement (P2, the only ready task; the default agent)
      worker-1  agent implement (command) started
      worker-1  | <next>land</next>
      worker-1  implement -> land
      worker-1  saved 2 files, +5 -0
      worker-1  landing on main
      worker-1  landed <commit> Fine on main (1 commit rebased onto <commit>, fast-forward)
      worker-1  nothing to do: no task is ready: 1 invalid, 1 landed
      worker-1  done: no task is ready and no worker is busy
      "
    `);
    expect([code, project.landed()]).toEqual([0, ['fine']]);
  });

  const listedBy = async (command: string) => {
    const project = workerProject({
      agents: { implement: good },
      config: `tasks: { command: "${command}" }`,
    });
    const { code, stderr } = await project.worker(['--until-idle']).ended;
    return `${saidBy(project, stderr)}exit ${code}`;
  };

  it('since the command that lists them fails', async () => {
    expect(await listedBy('echo no network >&2; exit 3')).toMatchInlineSnapshot(`
      "worker-1  started on branch main
      worker-1  the command that lists the tasks failed: echo no network >&2; exit 3
      no network
        hint: run it by hand, then fix \`tasks.command\` in reprise.yaml
      error[CONFIG_INVALID]: the list of tasks cannot be read, so it is unknown whether any task is left
        hint: fix \`tasks.command\` in reprise.yaml, or the program that it runs
      exit 2"
    `);
  });

  it('since the command that lists them prints nonsense', async () => {
    expect(await listedBy('echo nonsense')).toMatchInlineSnapshot(`
      "worker-1  started on branch main
      worker-1  \`echo nonsense\` did not print JSON: line 1 is \`nonsense\`
        hint: print a JSON array of tasks and nothing else; write messages to stderr
      error[CONFIG_INVALID]: the list of tasks cannot be read, so it is unknown whether any task is left
        hint: fix \`tasks.command\` in reprise.yaml, or the program that it runs
      exit 2"
    `);
  });

  it('until the command that lists them is mended, for whoever waits', async () => {
    const project = workerProject({
      agents: { implement: good },
      config: 'tasks: { command: cat list.json }',
    });
    const worker = project.worker(['--max-tasks', '1']);
    await until(() => worker.stderr.includes('sleeping: the list of tasks cannot be read'));
    project.git('commit', '--allow-empty', '--quiet', '--message', 'Something else');
    await until(() => worker.stderr.split('sleeping: ').length === 3);
    project.write({ 'list.json': '[{"id":"late","title":"Late"}]' });
    project.git('commit', '--allow-empty', '--quiet', '--message', 'Something more');
    const { code, stderr } = await worker.ended;
    expect(code, stderr).toBe(0);
    expect(stderr.split('the command that lists the tasks failed').length - 1).toBe(1);
    expect(project.landed()).toEqual(['late']);
  });
});
