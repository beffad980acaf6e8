import { RepriseError } from '../core/errors.ts';
import { land } from '../git/landing/land-now.ts';
import type { Landing } from '../git/landing/landing.ts';
import { openRepository, type Repository, resolveCommit } from '../git/repository.ts';
import { readBranchRecord } from '../git/workspace/branch-records.ts';
import { type ExitCode, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, writeLines } from '../project/host.ts';
import { thisOwner } from '../project/identity.ts';
import { findProject, type ProjectOptions, readConfig } from '../project/project.ts';
import { listed, selectRun, type UnitWork, unitWork, withStoredRuns } from '../project/runs.ts';
import { hasWork, landable } from '../terminal/run/summary-parts.ts';
import { jsonText } from '../terminal/text.ts';
import { shellWord } from '../terminal/words.ts';
import { standingOf } from '../view/run-status.ts';
import type { RunView } from '../view/run-view.ts';
import { landingReport, landingText } from './landing-report.ts';
import { verification } from './verify.ts';

export interface LandCommandOptions extends ProjectOptions {
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
