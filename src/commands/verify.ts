import { join } from 'node:path';
import { attemptFileName, logFile } from '../engine/log-files.ts';
import type { Verdict, Verification } from '../git/landing/prepare.ts';
import { runShellStep } from '../process/shell-step.ts';
import { type CommandIo, writeLines } from '../project/host.ts';
import type { Project } from '../project/project.ts';
import type { UnitWork } from '../project/runs.ts';
import type { RunView } from '../view/run-view.ts';
import { safeLine } from '../view/safe-text.ts';
import type { Config } from '../workflow/yaml/config.ts';

interface Circumstances {
  readonly io: CommandIo;
  readonly project: Project;
  readonly view: RunView;
  readonly work: UnitWork;
  readonly config: Config;
}

const graceMs = 5000;

/** Runs a command in a checkout of what is to be landed, after what makes a workspace of the project ready. */
export function verification(command: string, circumstances: Circumstances): Verification {
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
