import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import type { HistoryEvent } from '../../src/core/events.ts';
import { type CliResult, parseLines, startCli } from '../e2e/run-inline.ts';
import { ProcessTree } from '../support/process-trees.ts';
import { randomFrom, seedOf } from '../support/random.ts';
import { itAsRoot, mountLab, sh } from '../support/root.ts';
import { rounds } from '../support/rounds.ts';

const seed = seedOf(20_260_801);
const wanted = rounds(5);
const tasks = ['t1', 't2', 't3', 't4'];

const gitEnvironment = {
  PATH: process.env['PATH'],
  HOME: '/nonexistent',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_AUTHOR_NAME: 'Ann',
  GIT_AUTHOR_EMAIL: 'ann@example.com',
  GIT_COMMITTER_NAME: 'Ann',
  GIT_COMMITTER_EMAIL: 'ann@example.com',
};

const gitIn = (root: string, args: readonly string[], input = ''): string =>
  execFileSync('git', args, {
    cwd: root,
    env: gitEnvironment,
    encoding: 'utf8',
    stdio: 'pipe',
    input,
    maxBuffer: 1 << 28,
  });

/** Every second task is committed by the agent itself, whose git syncs nothing. */
const config = `
workers: { agent: t, branch: main }
agents:
  t:
    kind: scripted
    script:
      - run: |
          head -c 3000 /dev/urandom | base64 > $REPRISE_TASK.txt
          case $REPRISE_TASK in
            t2|t4) git add -A; git -c user.name=A -c user.email=a@example.com commit -qm "Own commit";;
          esac
      - say: <next>land</next>
`;

/** Makes a project on the mounted file system, and waits until the disk has it. */
function makeProject(root: string): void {
  mkdirSync(root);
  gitIn(root, ['init', '--quiet', '--initial-branch=main']);
  const files = {
    '.gitignore': '/.reprise/\n',
    'reprise.yaml': config,
    ...Object.fromEntries(tasks.map(id => [`issues/${id}.md`, `# Task ${id}\n\nWrite ${id}.txt.\n`])),
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  gitIn(root, ['add', '--all']);
  gitIn(root, ['commit', '--quiet', '--message=Begin']);
  sh('sync', '--file-system', root);
}

const cli = (root: string, args: readonly string[]): Promise<CliResult> => startCli(root, args, {}).ended;

async function historiesIn(root: string): Promise<readonly (readonly HistoryEvent[])[]> {
  const listed = await cli(root, ['list', '--json']);
  expect(listed.code, listed.stderr).toBe(0);
  const histories: (readonly HistoryEvent[])[] = [];
  for (const { id } of parseLines<{ id: string }>(listed.stdout)) {
    const { code, stdout, stderr } = await cli(root, ['history', id, '--raw', '--json']);
    expect(code, stderr).toBe(0);
    histories.push(parseLines<HistoryEvent>(stdout));
  }
  return histories;
}

/** Reads every object of a commit and its history. Throws if one is missing or empty. */
function readAll(root: string, commit: string): void {
  const ids = gitIn(root, ['rev-list', '--objects', '--no-object-names', commit]);
  expect(gitIn(root, ['cat-file', '--batch', '--buffer'], ids)).not.toMatch(/^[0-9a-f]+ missing$/m);
}

/** Everything that history names must be there. */
async function expectNothingMissing(root: string): Promise<number> {
  let named = 0;
  for (const history of await historiesIn(root)) {
    for (const event of history) {
      const commits: (string | undefined)[] = [];
      if (event.type === 'run.started') commits.push(event.data.base?.commit);
      if (event.type === 'workspace.created') commits.push(event.data.base);
      if (event.type === 'workspace.saved' || event.type === 'landing.parked')
        commits.push(event.data.commit);
      if (event.type === 'landing.ended') {
        const { outcome, commit, from } = event.data;
        commits.push(commit, from);
        if (outcome === 'landed') gitIn(root, ['merge-base', '--is-ancestor', commit ?? '', 'main']);
      }
      for (const commit of commits.filter(each => each !== undefined)) {
        readAll(root, commit);
        named++;
      }
    }
  }
  return named;
}

/** A worker finishes what is left; nothing lands twice. Two of the tasks land with two commits. */
async function expectWorkContinues(root: string): Promise<void> {
  const { code, stderr } = await cli(root, ['worker', '--until-idle']);
  expect(code, stderr).toBe(0);
  expect(gitIn(root, ['status', '--porcelain'])).toBe('');
  const landed = gitIn(root, ['log', '--format=%s', 'main']).trim().split('\n');
  expect(landed).toHaveLength(1 + tasks.length + 2);
  for (const id of tasks) expect(statSync(join(root, `${id}.txt`)).size).toBeGreaterThan(4_000);
  expect(existsSync(join(root, '.git/index.lock'))).toBe(false);
}

describe(`after a power loss (TEST_SEED=${seed})`, () => {
  itAsRoot(`history names nothing that is missing, and the work continues, in ${wanted} images`, async () => {
    console.info(`TEST_SEED=${seed}`);
    const random = randomFrom(seed);
    const lab = mountLab();
    const disk = join(lab.folder, 'disk.img');
    const mountPoint = 'disk';
    let named = 0;
    for (let taken = 0; taken < wanted; ) {
      sh('truncate', '--size=96M', disk);
      sh('mkfs.ext4', '-q', '-F', disk);
      // Only a sync writes anything: the kernel's own timers would hide what was not synced.
      const live = lab.mount(mountPoint, '-o', 'loop,commit=600', disk);
      const root = join(live, 'project');
      makeProject(root);
      const worker = startCli(root, ['worker', '--until-idle', '--workers', '2'], {});
      const tree = new ProcessTree(worker.pid);
      let isOver = false;
      void worker.ended.then(() => {
        isOver = true;
      });
      const images: string[] = [];
      while (!isOver && taken + images.length < wanted) {
        await delay(random() * 1_500);
        await tree.stop();
        const image = join(lab.folder, `${taken + images.length}.img`);
        sh('cp', '--sparse=always', disk, image);
        images.push(image);
        tree.resume();
      }
      await tree.kill();
      await worker.ended;
      lab.unmount(live);
      rmSync(disk);
      for (const image of images) {
        // The same folder as before: worktrees know each other by their paths.
        lab.mount(mountPoint, '-o', 'loop', image);
        named += await expectNothingMissing(root);
        await expectWorkContinues(root);
        lab.unmount(live);
        rmSync(image);
      }
      taken += images.length;
    }
    expect(named).toBeGreaterThan(wanted);
  });
});

describe('a disk that is full', () => {
  itAsRoot(
    'during a landing leaves the checkout as it was, and the landing works with space again',
    async () => {
      const lab = mountLab();
      const mount = lab.mount('full', '-t', 'tmpfs', '-o', 'size=60m', 'tmpfs');
      const root = join(mount, 'project');
      makeProject(root);
      writeFileSync(
        join(root, 'reprise.yaml'),
        'agents: { t: { kind: scripted, script: [ { run: "head -c 3000000 /dev/urandom > big.bin; echo changed > issues/t1.md; echo 1 > a" }, { say: ok } ] } }\n',
      );
      writeFileSync(join(root, 'w.yaml'), '{ name: w, steps: [ { id: a, agent: t, prompt: x } ] }\n');
      gitIn(root, ['add', '--all']);
      gitIn(root, ['commit', '--quiet', '--message=Workflow']);
      const run = await cli(root, ['run', 'w.yaml']);
      expect(run.code, run.stderr).toBe(0);
      const free = Number(sh('df', '--output=avail', '-k', mount).trim().split('\n').at(-1));
      sh('dd', 'if=/dev/zero', `of=${join(mount, 'fill')}`, 'bs=1k', `count=${free - 600}`);
      const full = await cli(root, ['land']);
      expect(full.stderr).not.toContain('INTERNAL');
      expect(full.code).toBe(6);
      expect(full.stderr).toContain('which has not moved');
      expect(gitIn(root, ['status', '--porcelain'])).toBe('');
      rmSync(join(mount, 'fill'));
      const again = await cli(root, ['land']);
      expect(again.code, again.stderr).toBe(0);
      expect(gitIn(root, ['status', '--porcelain'])).toBe('');
      expect(statSync(join(root, 'big.bin')).size).toBe(3_000_000);
    },
  );
});
