import { describe, expect, it } from 'vitest';
import { until } from './run-inline.ts';
import { saidBy, type WorkerProject, type WorkerProjectOptions, workerProject } from './worker-project.ts';

const working = 'echo good > good.txt; echo "<next>land</next>"';
const tasks = {
  first: '---\npriority: P0\nagent: faulty\n---\n\n# Fail\n',
  second: '# Succeed\n',
};

/** Project with two tasks: the agent `faulty` gets the first, and a working agent the second. */
const faultyProject = (faulty: string, { agents = {}, ...more }: WorkerProjectOptions = {}): WorkerProject =>
  workerProject({ agents: { implement: working, faulty, ...agents }, tasks, ...more });

/** Runs a worker until it is idle, and returns what became of the first task. */
async function runUntilIdle(project: WorkerProject) {
  const { code, stderr } = await project.worker(['--until-idle']).ended;
  const claims = await project.inStore(store => store.claims.list());
  return {
    code,
    log: firstTaskLog(saidBy(project, stderr)),
    landed: project.landed(),
    claim: claims.find(({ task }) => task === 'first'),
  };
}

/** Lines about the first task, without the name of the worker. */
const firstTaskLog = (log: string): string =>
  (/picked up first, .*\n([\s\S]*?)worker-1 {2}picked up second/.exec(log)?.[1] ?? '').replaceAll(
    'worker-1  ',
    '',
  );

describe('a worker whose first task fails', () => {
  it('takes the next task after an agent hands over to an unknown agent', async () => {
    const project = faultyProject(
      'echo asked >> $MARKS; echo half > half.txt; echo "<next>reviewer</next>"',
      {
        agents: { review: working },
      },
    );
    const { code, log, landed, claim } = await runUntilIdle(project);
    expect(log).toMatchInlineSnapshot(`
      "agent faulty (command) started
      | <next>reviewer</next>
      asking the agent again (rework 1): the agent did not end with a valid \`<next>\` instruction: There is no agent \`reviewer\`; did you mean \`review\`?
      agent faulty (command) started
      | <next>reviewer</next>
      asking the agent again (rework 2): the agent did not end with a valid \`<next>\` instruction: There is no agent \`reviewer\`; did you mean \`review\`?
      agent faulty (command) started
      | <next>reviewer</next>
      saved 1 file, +1 -0
      failed: the agent did not end with a valid \`<next>\` instruction after 2 corrections: There is no agent \`reviewer\`; did you mean \`review\`?
      gave up on first: the agent did not end with a valid \`<next>\` instruction after 2 corrections: There is no agent \`reviewer\`; did you mean \`review\`?; its work is on reprise/parked/first
      hint: read its messages: reprise logs; explain \`<next>\` in its prompt, or raise \`workers.corrections\`
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

  it('takes the next task after an agent hands over without a required argument', async () => {
    const project = faultyProject('echo "<next>agent: review</next>"', {
      config: '  review: { kind: command, command: [sh, -c, exit], inputs: { pull_request: {} } }',
    });
    const { code, log, landed, claim } = await runUntilIdle(project);
    expect(log).toMatchInlineSnapshot(`
      "agent faulty (command) started
      | <next>agent: review</next>
      asking the agent again (rework 1): the agent did not end with a valid \`<next>\` instruction: The agent \`review\` needs the argument \`pull_request\`.
      agent faulty (command) started
      | <next>agent: review</next>
      asking the agent again (rework 2): the agent did not end with a valid \`<next>\` instruction: The agent \`review\` needs the argument \`pull_request\`.
      agent faulty (command) started
      | <next>agent: review</next>
      failed: the agent did not end with a valid \`<next>\` instruction after 2 corrections: The agent \`review\` needs the argument \`pull_request\`.
      gave up on first: the agent did not end with a valid \`<next>\` instruction after 2 corrections: The agent \`review\` needs the argument \`pull_request\`.
      hint: read its messages: reprise logs; explain \`<next>\` in its prompt, or raise \`workers.corrections\`
      "
    `);
    expect([code, landed, claim?.state]).toEqual([1, ['second'], 'failed']);
  });

  it('takes the next task after an agent ends with a `<next>` tag that cannot be parsed', async () => {
    const project = faultyProject(`echo '<next>{"agent": [</next>'`);
    const { code, log, landed, claim } = await runUntilIdle(project);
    expect(log).toMatchInlineSnapshot(`
      "agent faulty (command) started
      | <next>{"agent": [</next>
      asking the agent again (rework 1): the agent did not end with a valid \`<next>\` instruction: The \`<next>\` tag starts with \`{\` but is not a JSON object.
      agent faulty (command) started
      | <next>{"agent": [</next>
      asking the agent again (rework 2): the agent did not end with a valid \`<next>\` instruction: The \`<next>\` tag starts with \`{\` but is not a JSON object.
      agent faulty (command) started
      | <next>{"agent": [</next>
      failed: the agent did not end with a valid \`<next>\` instruction after 2 corrections: The \`<next>\` tag starts with \`{\` but is not a JSON object.
      gave up on first: the agent did not end with a valid \`<next>\` instruction after 2 corrections: The \`<next>\` tag starts with \`{\` but is not a JSON object.
      hint: read its messages: reprise logs; explain \`<next>\` in its prompt, or raise \`workers.corrections\`
      "
    `);
    expect([code, landed, claim?.state]).toEqual([1, ['second'], 'failed']);
  });

  it('takes the next task after an agent crashes', async () => {
    const project = faultyProject('echo "no idea" >&2; exit 1');
    const { code, log, landed, claim } = await runUntilIdle(project);
    expect(log).toMatchInlineSnapshot(`
      "agent faulty (command) started
      failed: the agent exited with code 1 without a result
      gave up on first: the agent exited with code 1 without a result
      hint: run \`sh agents/faulty.sh\` by hand to see its output. The whole output is in <root>/.git/reprise/logs/<run>/work.1.0.session.log
      "
    `);
    expect([code, landed, claim?.state]).toEqual([1, ['second'], 'failed']);
  });

  it('takes the next task after an agent gives up', async () => {
    const project = faultyProject('echo "<next>give-up: there is no such file</next>"');
    const { code, log, landed, claim } = await runUntilIdle(project);
    expect(log).toMatchInlineSnapshot(`
      "agent faulty (command) started
      | <next>give-up: there is no such file</next>
      faulty -> give-up: there is no such file
      failed: faulty gave up: there is no such file
      gave up on first: faulty gave up: there is no such file
      hint: change the text of the task, or retry it unchanged: reprise tasks release
      "
    `);
    expect([code, landed, claim?.state]).toEqual([1, ['second'], 'failed']);
  });

  it('parks work that keeps failing the verification, and takes the next task', async () => {
    const project = faultyProject('echo asked >> $MARKS; echo bad > bad.txt; echo "<next>land</next>"', {
      config: `workers: { verify: "if [ -e bad.txt ]; then echo bad.txt is bad; exit 1; fi" }`,
    });
    const { code, log, landed, claim } = await runUntilIdle(project);
    expect(log).toMatchInlineSnapshot(`
      "agent faulty (command) started
      | <next>land</next>
      faulty -> land
      saved 2 files, +2 -0
      landing on main
      not landed on main: verification failed: bad.txt is bad
      agent faulty (command) started
      | <next>land</next>
      saved 2 files, +2 -0
      landing on main
      not landed on main: verification failed: bad.txt is bad
      agent faulty (command) started
      | <next>land</next>
      saved 2 files, +2 -0
      landing on main
      not landed on main: verification failed: bad.txt is bad
      parked on reprise/parked/first: verification failed after rebasing onto main: bad.txt is bad
      failed: first could not be landed on main: verification failed after rebasing onto main
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

  it('parks work whose conflict the agent does not resolve, and takes the next task', async () => {
    const project = faultyProject(`
      echo asked >> $MARKS
      until [ -e $MARKS.gate ]; do sleep 0.02; done
      grep -q '<<<<<<<' a.txt || echo theirs > a.txt
      echo "<next>land</next>"`);
    const worker = runUntilIdle(project);
    await until(() => project.marks().length === 1);
    project.write({ 'a.txt': 'ours\n' });
    project.git('commit', '--quiet', '--all', '--message', 'Ours');
    project.tell('gate', '');
    const { code, log, landed, claim } = await worker;
    expect(log).toMatchInlineSnapshot(`
      "agent faulty (command) started
      | <next>land</next>
      note: work: changed during the session, but not attributable to it: branch main was moved
      faulty -> land
      saved 2 files, +2 -1
      landing on main
      reprise/worker/<run>/work conflicts with main: cannot rebase "Fail" onto main: conflicts in a.txt
      agent faulty (command) started
      | <next>land</next>
      agent faulty (command) started
      | <next>land</next>
      agent faulty (command) started
      | <next>land</next>
      parked on reprise/parked/first: conflict markers are left in a.txt
      failed: first could not be landed on main: conflict markers are left in a.txt
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

  it('lands work whose `<next>` tag the agent corrects', async () => {
    const project = faultyProject(`
      echo asked >> $MARKS
      [ "$(grep -c . $MARKS)" = 1 ] && { echo "<next>lnd</next>"; exit; }
      echo right > right.txt
      echo "<next>land</next>"`);
    const { code, landed, claim } = await runUntilIdle(project);
    expect([code, landed, claim?.state]).toEqual([0, ['first', 'second'], 'landed']);
    expect(project.marks()).toEqual(['asked', 'asked']);
  });
});

it('a failed dispatcher is asked again only after something has changed', async () => {
  const project = workerProject({
    agents: { implement: working, dispatch: 'echo asked >> $MARKS; exit 1' },
    tasks: { one: '# Add a file\n' },
    config: 'workers: { dispatch: agent }',
  });
  const worker = project.worker();
  await until(() => worker.stderr.includes('sleeping'));
  expect(project.marks()).toEqual(['asked']);
  project.write({ 'issues/two.md': '# Add another file\n' });
  project.git('add', '--all');
  project.git('commit', '--quiet', '--message', 'Add a task');
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

describe('a worker with an unreadable task list', () => {
  it('reports a broken task once, and does the others', async () => {
    const project = workerProject({
      agents: { implement: working },
      tasks: { broken: '---\npriority: P9\nneeds: [\n---\n# Broken\n', valid: '# Valid\n' },
    });
    const { code, stderr } = await project.worker(['--until-idle']).ended;
    const [problems] = saidBy(project, stderr).split('worker-1  picked up valid');
    expect(problems).toMatchInlineSnapshot(`
      "worker-1  started on branch main
      worker-1  issues/broken.md:4:1: not valid YAML: flow sequence in block collection must be sufficiently indented and end with a ]
         4 | 
           | ^
        hint: check the indentation of this line and the one before it
      "
    `);
    expect([code, project.landed()]).toEqual([2, ['valid']]);
  });

  const listedBy = async (command: string) => {
    const project = workerProject({
      agents: { implement: working },
      config: `tasks: { command: "${command}" }`,
    });
    const { code, stderr } = await project.worker(['--until-idle']).ended;
    return `${saidBy(project, stderr)}exit ${code}`;
  };

  it('exits with 2 under --until-idle if `tasks.command` fails', async () => {
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

  it('exits with 2 under --until-idle if `tasks.command` prints no JSON', async () => {
    expect(await listedBy('echo nonsense')).toMatchInlineSnapshot(`
      "worker-1  started on branch main
      worker-1  \`echo nonsense\` did not print JSON: line 1 is \`nonsense\`
        hint: print a JSON array of tasks and nothing else; write messages to stderr
      error[CONFIG_INVALID]: the list of tasks cannot be read, so it is unknown whether any task is left
        hint: fix \`tasks.command\` in reprise.yaml, or the program that it runs
      exit 2"
    `);
  });

  it('sleeps until `tasks.command` works again', async () => {
    const project = workerProject({
      agents: { implement: working },
      config: 'tasks: { command: cat list.json }',
    });
    const worker = project.worker(['--max-tasks', '1']);
    await until(() => worker.stderr.includes('sleeping: the list of tasks cannot be read'));
    project.git('commit', '--allow-empty', '--quiet', '--message', 'Wake the worker');
    await until(() => worker.stderr.split('sleeping: ').length === 3);
    project.write({ 'list.json': '[{"id":"late","title":"Add a file"}]' });
    project.git('commit', '--allow-empty', '--quiet', '--message', 'Wake the worker again');
    const { code, stderr } = await worker.ended;
    expect(code, stderr).toBe(0);
    expect(stderr.split('the command that lists the tasks failed').length - 1).toBe(1);
    expect(project.landed()).toEqual(['late']);
  });
});

describe('the exit code of a worker', () => {
  const impossible = {
    'invalid front matter': { broken: '---\npriority: urgent\n---\n\n# Broken\n' },
    'an unknown agent': { broken: '---\nagent: nosuch\n---\n\n# Broken\n' },
    'an unknown need': { waits: '---\nneeds: [nosuch]\n---\n\n# Waits\n' },
    'a cycle': {
      chicken: '---\nneeds: [egg]\n---\n\n# Chicken\n',
      egg: '---\nneeds: [chicken]\n---\n\n# Egg\n',
    },
  };

  it.each(Object.entries(impossible))('is 2 after every other task landed: %s', async (_, tasks) => {
    const project = workerProject({
      agents: { implement: working },
      tasks: { working: '# Good\n', ...tasks },
    });
    const { code, stderr } = await project.worker(['--until-idle']).ended;
    expect([code, project.landed()], stderr).toEqual([2, ['working']]);
    expect((await project.worker(['--once']).ended).code).toBe(2);
  });

  it('is 0 if the only task with a problem is done', async () => {
    const tasks = { old: '---\nstate: done\nneeds: [nosuch]\n---\n\n# Old\n' };
    const project = workerProject({ agents: { implement: working }, tasks });
    expect((await project.worker(['--until-idle']).ended).code).toBe(0);
  });

  it.each([
    [1, 'a task failed', 'echo "<next>give_up</next>"'],
    [6, 'work was parked', 'echo bad > bad.txt; echo "<next>land</next>"'],
  ])('is %i if %s, also if another task can never be done', async (code, _, implement) => {
    const project = workerProject({
      agents: { implement },
      tasks: { first: '# First\n', ...impossible['an unknown need'] },
      config: 'workers: { verify: "test ! -e bad.txt", resolve: 0 }\n',
    });
    const ended = await project.worker(['--until-idle']).ended;
    expect(ended.code, ended.stderr).toBe(code);
  });
});

it("a worker gives its task back while the model's server is down, and lands it afterwards", async () => {
  const agent = `
    echo asked >> $MARKS
    if [ $(wc -l < $MARKS) -lt 3 ]; then echo '{"type":"result","error":"API Error: 529 Overloaded"}'; exit; fi
    ${working}`;
  const project = workerProject({ agents: { implement: agent }, tasks: { first: '# Goes well\n' } });
  const { code, stderr } = await project.worker(['--until-idle']).ended;
  expect(stderr).toContain("the model's server cannot be reached; trying again in 2.0s");
  expect(stderr).toContain('trying again in 4.0s');
  expect([code, project.landed(), project.marks()]).toEqual([0, ['first'], ['asked', 'asked', 'asked']]);
});
