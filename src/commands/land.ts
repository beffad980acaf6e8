import { join } from 'node:path';
import { RepriseError, toErrorData, toTimestamp } from '../core/index.ts';
import { attemptFileName, logFile } from '../engine/index.ts';
import { landingFolder, openRepository, type Repository, resolveCommit, stalledText } from '../git/index.ts';
import { type Landing, land, type Verification, type VerificationResult } from '../git/landing/index.ts';
import { readBranchRecord } from '../git/workspace/index.ts';
import { runShellStep } from '../process/index.ts';
import {
  type CommandIo,
  type ExitCode,
  exitCodes,
  findProject,
  listed,
  lockTimeoutOf,
  type Project,
  type ProjectOptions,
  readConfig,
  selectRun,
  thisOwner,
  type UnitWork,
  unitWork,
  userName,
  withStoredRuns,
  workspacesOf,
  writeLines,
} from '../project/index.ts';
import { count, hasWork, hintLines, jsonText, landable, shellWord } from '../terminal/index.ts';
import { type RunView, runStatusOf, safeLine, safeText } from '../view/index.ts';
import { workerSource } from '../worker/index.ts';
import type { Config } from '../workflow/yaml/index.ts';

interface LandCommandOptions extends ProjectOptions {
  readonly run?: string | undefined;
  /** Step (`fix`) or copy (`fix:1`). Defaults to the only one with work that has not landed. */
  readonly step?: string | undefined;
  /** Target branch. Defaults to the branch that the run started from. */
  readonly onto?: string | undefined;
  /** Shell command that must pass on the rebased work before the branch moves. */
  readonly verify?: string | undefined;
  readonly json?: boolean | undefined;
}

/** Lands the work of a finished step or copy on a branch. Throws USAGE, CANNOT_LAND. */
export async function landCommand(
  { io }: { readonly io: CommandIo },
  options: LandCommandOptions,
): Promise<ExitCode> {
  const project = findProject(io, options);
  const view = await withStoredRuns({ project, mode: 'readonly' }, async store => {
    const { runId } = await selectRun(store, options.run);
    return runStatusOf(runId, await store.read(runId)).view;
  });
  const repository = await openRepository({ cwd: project.root, inheritEnv: io.env });
  const work =
    options.step === undefined
      ? await onlyWork(view, repository)
      : finished(unitWork(view, options.step, 'land'));
  if (!work) {
    if (options.json) writeLines(io.out, jsonText({ run: view.runId, outcome: 'nothing-to-land' }));
    else writeLines(io.err, `nothing left to land from run ${view.runId}`);
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
    // A person who lands work has decided on it.
    approved: 'everything',
    signal: io.interrupt,
    giveUpMs: lockTimeoutOf(config),
    onWait: (holder, stalledMs) =>
      writeLines(
        io.err,
        stalledMs === undefined
          ? `waiting for process ${holder.pid} to finish its landing`
          : stalledText(holder, stalledMs),
      ),
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
      landingText(landing, { ...about, retry: `${retryCommand(about, options)}${project.commandSuffix}` }),
    );
  if (!hasLanded(landing)) return exitCodes.cannotLand;
  await answerWaitingRun({ io, project, view, branch }, options);
  return exitCodes.ok;
}

/** Approves the landing that a run waits for, now that a person has landed its work, so that the run can end. */
async function answerWaitingRun(
  { io, project, view, branch }: Pick<LandContext, 'io' | 'project' | 'view'> & { readonly branch: string },
  options: LandCommandOptions,
): Promise<void> {
  const { runId } = view;
  const step = view.steps.find(({ status, answer, waits }) => {
    const asks = (wait: (typeof waits)[number]) => wait.on === 'approval' && wait.branch === branch;
    return status === 'waiting' && answer === undefined && waits.some(asks);
  });
  if (!step || runId === undefined) return;
  const by = userName(io);
  const source = await withStoredRuns({ project, mode: 'writable' }, async store => {
    const answer = { kind: 'approval', step: step.path, choice: 'approve', ...(by ? { by } : {}) } as const;
    await store.post(runId, answer, toTimestamp(io.now()));
    return runStatusOf(runId, await store.read(runId)).source;
  });
  if (source !== workerSource) return;
  const { continueWorkerRun } = await import('./approve.ts');
  // The settings that have just landed may be unusable. The work is on the branch all the same.
  await continueWorkerRun({ io }, runId, options).catch(error =>
    writeLines(
      io.err,
      `the next worker ends run ${runId}, because it cannot be ended now: ${toErrorData(error).message}`,
    ),
  );
}

const retryCommand = (
  { run, unit }: { readonly run: string; readonly unit: string },
  { onto, verify }: LandCommandOptions,
): string =>
  [
    `reprise land ${run} ${shellWord(unit)}`,
    ...(onto === undefined ? [] : [`--onto ${shellWord(onto)}`]),
    ...(verify === undefined ? [] : [`--verify ${shellWord(verify)}`]),
  ].join(' ');

const hasLanded = ({ kind }: Landing): boolean => kind === 'landed' || kind === 'nothing-to-land';

/** The only work that has not landed; `undefined` if all of it has. Throws USAGE if there are several. */
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

/** Whether a branch was landed after its run had ended. Such a landing is not in the history of the run. */
async function landedByHand(repository: Repository, branch: string): Promise<boolean> {
  const tip = await resolveCommit(repository.git, `refs/heads/${branch}`);
  return tip === undefined || readBranchRecord(repository, branch)?.landed?.tip === tip;
}

/** Returns the work. Throws USAGE if the step has not completed, CANNOT_LAND if it changed nothing. */
function finished(work: UnitWork): UnitWork {
  const { step, workspace } = work;
  if (step.status !== 'completed') {
    throw new RepriseError('USAGE', `${step.path} has not completed: it is ${step.status}`, {
      hint: `its commits are on its branch; to use them anyway: git merge ${workspace.branch}`,
    });
  }
  if (hasWork(step)) return work;
  throw new RepriseError('CANNOT_LAND', `${step.path} has no changes to land`);
}

/** Branch that the run started from; `undefined` if HEAD was detached. */
const branchOf = ({ base }: RunView): string | undefined => (base?.ref === 'HEAD' ? undefined : base?.ref);

async function currentBranch({ git }: Repository): Promise<string> {
  const { stdout } = await git.run(['symbolic-ref', '--quiet', '--short', 'HEAD']);
  const branch = stdout.trim();
  if (branch !== '') return branch;
  throw new RepriseError('CANNOT_LAND', 'no branch is checked out, so the target is unknown', {
    hint: 'name the target branch: --onto main',
  });
}

interface LandContext {
  readonly io: CommandIo;
  readonly project: Project;
  readonly view: RunView;
  readonly work: UnitWork;
  readonly config: Config;
}

const graceMs = 5000;

/** Verification that runs the setup of the project and then the command in a checkout of the rebased work. */
function verification(command: string, context: LandContext): Verification {
  const { project, view, work, config } = context;
  const { path: step, attempt } = work.step;
  const of = { step, attempt };
  const { setup = [], include = [] } = config.worktrees ?? {};
  return {
    path: join(landingFolder(workspacesOf(project, config), view.runId ?? ''), attemptFileName(of)),
    include,
    run: async ({ path }) => {
      for (const [index, script] of setup.entries()) {
        const verdict = await runIn(path, { script, what: `land-setup-${index + 1}`, ...context });
        if (!verdict.passed) return verdict;
      }
      return runIn(path, { script: command, what: 'land-verify', ...context });
    },
  };
}

async function runIn(
  path: string,
  { script, what, io, project, view, work }: LandContext & { readonly script: string; readonly what: string },
): Promise<VerificationResult> {
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
      return { passed: false, output: 'the command was cancelled' };
  }
}

interface LandingSubject {
  readonly run: string;
  /** Step (`fix`) or copy (`fix:1`). */
  readonly unit: string;
  /** Source branch. */
  readonly branch: string;
  readonly onto: string;
}

/** Result of a landing as JSON. */
function landingReport(landing: Landing, { run, unit, branch, onto }: LandingSubject): object {
  const { kind, target: _, ...rest } = landing;
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

/** Result of a landing as text, with the command to type next. */
function landingText(landing: Landing, about: LandingSubject & { readonly retry: string }): string {
  const { unit } = about;
  const onto = safeLine(about.onto);
  switch (landing.kind) {
    case 'landed':
      return [
        `landed ${count(landing.commits.length, 'commit')} of ${unit} on ${onto} (now at ${landing.commit.slice(0, 10)}):`,
        ...landing.commits.map(({ commit, subject }) => `  ${commit.slice(0, 10)} ${safeLine(subject)}`),
        `see the changes: git log -p ${landing.from.slice(0, 10)}..${shellWord(about.onto)}`,
      ].join('\n');
    case 'nothing-to-land':
      return `nothing to land: ${onto} already has all changes of ${unit}`;
    case 'verify-failed':
      return [...refusal(landing, about), ...quoted(landing.output)].join('\n');
    case 'conflict':
    case 'lost-the-race':
    case 'fenced':
    case 'main-checkout-in-the-way':
    case 'needs-approval':
      return refusal(landing, about).join('\n');
  }
}

const refusal = (
  { why, hint }: { readonly why: string; readonly hint: string },
  { unit, onto, retry }: LandingSubject & { readonly retry: string },
): readonly string[] => [
  `${unit} did not land on ${safeLine(onto)}, which has not moved: ${safeLine(why)}`,
  ...hintLines(hint),
  `  retry: ${retry}`,
];

const quoted = (output: string): readonly string[] =>
  safeText(output.trimEnd())
    .split('\n')
    .map(line => `  | ${line}`);
