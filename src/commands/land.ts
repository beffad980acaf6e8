import { join } from 'node:path';
import { RepriseError } from '../core/errors.ts';
import { attemptFileName, logFile } from '../engine/log-files.ts';
import { land } from '../git/landing/land-now.ts';
import type { Landing } from '../git/landing/landing.ts';
import type { Verdict, Verification } from '../git/landing/prepare.ts';
import { openRepository, type Repository, resolveCommit } from '../git/repository.ts';
import { readBranchRecord } from '../git/workspace/branch-records.ts';
import { runShellStep } from '../process/shell-step.ts';
import { type ExitCode, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, writeLines } from '../project/host.ts';
import { thisOwner } from '../project/identity.ts';
import { findProject, type Project, type ProjectOptions, readConfig } from '../project/project.ts';
import { listed, selectRun, type UnitWork, unitWork, withStoredRuns } from '../project/runs.ts';
import { hintLines } from '../terminal/errors.ts';
import { hasWork, landable } from '../terminal/run/summary-parts.ts';
import { count, jsonText } from '../terminal/text.ts';
import { shellWord } from '../terminal/words.ts';
import { standingOf } from '../view/run-status.ts';
import type { RunView } from '../view/run-view.ts';
import { safeLine, safeText } from '../view/safe-text.ts';
import type { Config } from '../workflow/yaml/config.ts';

interface LandCommandOptions extends ProjectOptions {
  readonly run?: string | undefined;
  /** `fix`, `fix:1`; the only one with work that has not landed by default. */
  readonly step?: string | undefined;
  /** The branch to land on; the one that the run began from by default. */
  readonly onto?: string | undefined;
  /** A shell command that must pass on the result before anything moves. */
  readonly verify?: string | undefined;
  readonly json?: boolean | undefined;
}

/** Brings the work of a finished step or worker onto a branch. Throws USAGE, CANNOT_LAND. */
export async function landCommand(
  { io }: { readonly io: CommandIo },
  options: LandCommandOptions,
): Promise<ExitCode> {
  const project = findProject(io, options);
  const view = await withStoredRuns({ project, mode: 'readonly' }, async store => {
    const { runId } = await selectRun(store, options.run);
    return standingOf(runId, await store.read(runId)).view;
  });
  const repository = await openRepository({ cwd: project.root, inheritEnv: io.env });
  const work =
    options.step === undefined
      ? await onlyWork(view, repository)
      : finished(unitWork(view, options.step, 'land'));
  if (!work) {
    if (options.json) writeLines(io.out, jsonText({ run: view.runId, outcome: 'nothing-to-land' }));
    else writeLines(io.err, `run ${view.runId} has no work that has not landed`);
    return exitCodes.ok;
  }
  const { branch } = work.workspace;
  const onto = options.onto ?? branchOf(view) ?? (await currentBranch(repository));
  const config = await readConfig(project, io);
  const landing = await land({
    repository,
    owner: thisOwner(),
    source: { branch },
    onto,
    signal: io.interrupt,
    onWait: ({ pid }) => writeLines(io.err, `waiting for process ${pid}, which is landing`),
    verify:
      options.verify === undefined
        ? undefined
        : verification(options.verify, { io, project, view, work, config }),
  });
  const about = { run: view.runId ?? '', unit: work.step.path, branch, onto };
  if (options.json) writeLines(io.out, jsonText(landingReport(landing, about)));
  else
    writeLines(
      io.err,
      landingText(landing, { ...about, again: `${againText(about, options)}${project.commandSuffix}` }),
    );
  return hasLanded(landing) ? exitCodes.ok : exitCodes.cannotLand;
}

const againText = (
  { run, unit }: { readonly run: string; readonly unit: string },
  { onto, verify }: LandCommandOptions,
): string =>
  [
    `reprise land ${run} ${shellWord(unit)}`,
    ...(onto === undefined ? [] : [`--onto ${shellWord(onto)}`]),
    ...(verify === undefined ? [] : [`--verify ${shellWord(verify)}`]),
  ].join(' ');

const hasLanded = ({ kind }: Landing): boolean => kind === 'landed' || kind === 'nothing-to-land';

/** The one that a person must mean; undefined if everything has landed. Throws USAGE if there are several. */
async function onlyWork(view: RunView, repository: Repository): Promise<UnitWork | undefined> {
  const open: UnitWork[] = [];
  for (const step of landable(view)) {
    const { workspace } = step.work;
    if (workspace && !(await landedByHand(repository, workspace.branch))) open.push({ step, workspace });
  }
  const [only, ...others] = open;
  if (others.length === 0) return only;
  throw new RepriseError(
    'USAGE',
    `several steps of run ${view.runId} have work that has not landed: ${listed(open.map(({ step }) => step.path))}`,
    { hint: `name one: reprise land ${view.runId} ${only?.step.path}` },
  );
}

/** A landing after the run has ended is not in its history. */
async function landedByHand(repository: Repository, branch: string): Promise<boolean> {
  const tip = await resolveCommit(repository.git, `refs/heads/${branch}`);
  return tip === undefined || readBranchRecord(repository, branch)?.landed?.tip === tip;
}

/** Throws USAGE unless its work is done, and there is some. */
function finished(work: UnitWork): UnitWork {
  const { step, workspace } = work;
  if (step.status !== 'completed') {
    throw new RepriseError('USAGE', `${step.path} has not completed: it is ${step.status}`, {
      hint: `what it has committed is on its branch; to have it even so: git merge ${workspace.branch}`,
    });
  }
  if (hasWork(step)) return work;
  throw new RepriseError('CANNOT_LAND', `${step.path} has changed nothing, so there is nothing to land`);
}

/** The branch that the run began from; undefined if none was checked out then. */
const branchOf = ({ base }: RunView): string | undefined => (base?.ref === 'HEAD' ? undefined : base?.ref);

async function currentBranch({ git }: Repository): Promise<string> {
  const { stdout } = await git.run(['symbolic-ref', '--quiet', '--short', 'HEAD']);
  const branch = stdout.trim();
  if (branch !== '') return branch;
  throw new RepriseError('CANNOT_LAND', 'no branch is checked out, so it is not clear where to land', {
    hint: 'name the branch: --onto main',
  });
}

interface Circumstances {
  readonly io: CommandIo;
  readonly project: Project;
  readonly view: RunView;
  readonly work: UnitWork;
  readonly config: Config;
}

const graceMs = 5000;

/** Runs a command in a checkout of what is to be landed, after what makes a workspace of the project ready. */
function verification(command: string, circumstances: Circumstances): Verification {
  const { project, view, work, config } = circumstances;
  const { path: step, attempt } = work.step;
  const of = { step, attempt };
  const { setup = [], include = [] } = config.worktrees ?? {};
  return {
    path: join(project.stateDir, 'landing', view.runId ?? '', attemptFileName(of)),
    include,
    run: async ({ path }) => {
      for (const [index, script] of setup.entries()) {
        const verdict = await runIn(path, { script, what: `land-setup-${index + 1}`, ...circumstances });
        if (!verdict.passed) return verdict;
      }
      return runIn(path, { script: command, what: 'land-verify', ...circumstances });
    },
  };
}

async function runIn(
  path: string,
  {
    script,
    what,
    io,
    project,
    view,
    work,
  }: Circumstances & { readonly script: string; readonly what: string },
): Promise<Verdict> {
  const { path: step, attempt } = work.step;
  const of = { step, attempt };
  const runId = view.runId ?? '';
  writeLines(io.err, `running ${safeLine(script)}`);
  const end = await runShellStep({
    command: { script, shell: 'bash', env: { REPRISE_WORKSPACE: path }, workingDirectory: path },
    projectRoot: project.root,
    scratchDir: join(project.stateDir, 'scratch', runId, `${attemptFileName(of)}.${what}`),
    logFile: logFile({ stateDir: project.stateDir, runId }, of, what),
    identity: { runId, step, attempt, incarnation: what },
    inheritEnv: io.env,
    signal: io.interrupt,
    graceMs,
  });
  switch (end.kind) {
    case 'completed':
      return { passed: true, output: end.tail };
    case 'failed':
      return { passed: false, output: end.error.message };
    case 'cancelled':
      return { passed: false, output: 'it was stopped' };
  }
}

interface About {
  readonly run: string;
  /** The step or worker. */
  readonly unit: string;
  /** What is landed. */
  readonly branch: string;
  readonly onto: string;
}

/** What became of a landing, for programs. */
function landingReport(landing: Landing, { run, unit, branch, onto }: About): object {
  const { kind, branch: _, ...rest } = landing;
  const {
    token: __,
    wasAlone: ___,
    ...facts
  } = rest as typeof rest & {
    readonly token?: number;
    readonly wasAlone?: boolean;
  };
  return { ...facts, run, step: unit, branch, onto, outcome: kind };
}

/** The same for people, with what to type next. */
function landingText(landing: Landing, about: About & { readonly again: string }): string {
  const { unit } = about;
  const onto = safeLine(about.onto);
  switch (landing.kind) {
    case 'landed':
      return [
        `landed ${count(landing.commits.length, 'commit')} of ${unit} on ${onto}, which is at ${landing.commit.slice(0, 10)} now:`,
        ...landing.commits.map(({ commit, subject }) => `  ${commit.slice(0, 10)} ${safeLine(subject)}`),
        `see it: git log -p ${landing.from.slice(0, 10)}..${shellWord(about.onto)}`,
      ].join('\n');
    case 'nothing-to-land':
      return `nothing to land: all of ${unit} is on ${onto} already`;
    case 'verify-failed':
      return [...refusal(landing, about), ...quoted(landing.output)].join('\n');
    case 'conflict':
    case 'lost-the-race':
    case 'fenced':
    case 'main-checkout-in-the-way':
      return refusal(landing, about).join('\n');
  }
}

const refusal = (
  { why, hint }: { readonly why: string; readonly hint: string },
  { unit, onto, again }: About & { readonly again: string },
): readonly string[] => [
  `${unit} was not landed on ${safeLine(onto)}, and nothing was changed: ${safeLine(why)}`,
  ...hintLines(hint),
  `  again: ${again}`,
];

const quoted = (output: string): readonly string[] =>
  safeText(output.trimEnd())
    .split('\n')
    .map(line => `  | ${line}`);
