import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type HistoryEvent, RepriseError, toTimestamp } from '../core/index.ts';
import type { Engine, Observation, RunOptions, RunResult, Waiting } from '../engine/index.ts';
import {
  agentsFor,
  type CommandIo,
  displayPath,
  type ExitCode,
  excludeWorkspaces,
  exitCodeOfError,
  exitCodeOfResult,
  exitCodes,
  type LoadedDefinition,
  openEngine,
  type Project,
  readConfig,
  styleOf,
  userName,
  worktreesOf,
  writeLines,
} from '../project/index.ts';
import { type JournalCommand, type RunJournal, resumeLine, withLimits } from '../project/journal/index.ts';
import type { EventStore } from '../store/index.ts';
import { jsonText, type RunReporter } from '../terminal/index.ts';
import type { WorkflowModel } from '../workflow/index.ts';
import type { Config } from '../workflow/yaml/index.ts';

export interface ExecuteRunOptions extends DisplayOptions {
  readonly maxConcurrent?: number | undefined;
  readonly wait?: boolean | undefined;
}

interface Execution {
  readonly io: CommandIo;
  readonly project: Project;
  readonly definition: LoadedDefinition;
  readonly options: ExecuteRunOptions;
  /** Id of the run that is resumed, so that its finished steps are shown. */
  readonly runId?: string | undefined;
  /** Command line that repeats this command, for the journal. */
  readonly command: JournalCommand;
  /** Starts, resumes or forks the run. After each answer at the keyboard, the run is resumed. */
  readonly begin: (engine: Engine, options: RunOptions) => Promise<RunResult>;
}

/** Runs a workflow in this process, shows its progress and asks for approvals if a user is at the keyboard. */
export async function executeRun(request: Execution): Promise<ExitCode> {
  const { io, project, definition, options, runId, begin } = request;
  const config = await readConfig(project, io);
  const runOptions = limitsOf({ io, definition, options }, config);
  const agents = await agentsFor(definition.model, { project, io }, async () => config);
  excludeWorkspaces(project);
  // Each leg has its own engine and journal, as if it were a separate process.
  const session = async (
    resumed: string | undefined,
    command: JournalCommand,
    work: (engine: Engine) => Promise<RunResult>,
  ): Promise<ExecutionOutcome> => {
    const journal = await openJournal(request, config, command);
    let exit: ExitCode = exitCodes.failed;
    try {
      let progress: RunReporter | undefined;
      const { engine, store, close } = await openEngine({
        ...project,
        ...(journal ? { host: journal.host } : {}),
        env: io.env,
        agents,
        worktrees: worktreesOf(project, config),
        observe: observation => progress?.observe(observation),
      });
      try {
        const history = resumed === undefined ? [] : await store.read(resumed);
        progress = await openProgress(
          { io, project, display: options },
          { workflow: definition.model, history },
        );
        let result: RunResult | undefined;
        try {
          result = await work(engine);
        } finally {
          await progress.close(result);
        }
        exit = exitCodeOfResult(result);
        if (!options.json && (await answerOne({ io, store, result }))) return { result, isAnswered: true };
        await showEnd({ io, project, store, definition, options, result });
        return { result, isAnswered: false };
      } finally {
        await close();
      }
    } catch (error) {
      exit = exitCodeOfError(error);
      throw error;
    } finally {
      await journal?.close(exit);
    }
  };
  let end = await session(runId, request.command, engine => begin(engine, runOptions));
  while (end.isAnswered) {
    const { runId } = end.result;
    end = await session(runId, resumeLine(runId), engine =>
      engine.resume({ ...runOptions, workflow: definition.model, runId }),
    );
  }
  return exitCodeOfResult(end.result);
}

interface ExecutionOutcome {
  readonly result: RunResult;
  /** Whether the user answered an approval, so that the run has to be resumed. */
  readonly isAnswered: boolean;
}

/** Opens a journal, unless the project disables recording or a host replaces the real world. */
async function openJournal(
  { io, project, definition, options }: Execution,
  config: Config,
  command: JournalCommand,
): Promise<RunJournal | undefined> {
  if (project.host || config.record === false) return undefined;
  const { openRunJournal } = await import('../project/journal/run-journal.ts');
  const slots = options.maxConcurrent ?? slotsFromEnv(io);
  return openRunJournal({
    io,
    project,
    command: withLimits(command, { places: slots, wait: options.wait }),
    source: definition.source,
  });
}

/**
 * Limits of the run. A flag overrides the environment, which overrides the workflow, which overrides reprise.yaml. Throws
 * CONFIG_INVALID.
 */
function limitsOf(
  { io, definition, options }: Pick<Execution, 'io' | 'definition' | 'options'>,
  config: Config,
): RunOptions {
  const { model } = definition;
  return {
    maxConcurrentWorkers:
      options.maxConcurrent ?? slotsFromEnv(io) ?? model.maxConcurrentWorkers ?? config.maxConcurrentWorkers,
    budgetMs: model.budgetMs ?? config.budgetMs,
    budget: model.budget ?? config.budget,
    suspend: io.interrupt,
    hurry: io.hurry,
    wait: options.wait,
  };
}

const slotsVariable = 'REPRISE_MAX_CONCURRENT_WORKERS';

function slotsFromEnv({ env }: CommandIo): number | undefined {
  const text = env[slotsVariable];
  if (!text) return undefined;
  if (/^[1-9]\d*$/.test(text)) return Number(text);
  throw new RepriseError(
    'CONFIG_INVALID',
    `${slotsVariable} must be a whole number, 1 or greater, not ${JSON.stringify(text)}`,
    { hint: `for example ${slotsVariable}=4` },
  );
}

interface SuspendedRunContext {
  readonly io: CommandIo;
  readonly store: EventStore;
  readonly result: RunResult;
}

/** Asks the user to answer an approval that the run is waiting for. Resolves with whether it was answered. */
async function answerOne({ io, store, result }: SuspendedRunContext): Promise<boolean> {
  if (result.status !== 'waiting' || !io.ask || io.interrupt.aborted) return false;
  const approval = result.waiting.find(
    (waiting): waiting is Waiting & { on: 'approval' } => waiting.on === 'approval',
  );
  if (!approval) return false;
  const { runId } = result;
  const lastSeq = (await store.read(runId)).length;
  const lastEntry = (await store.inbox(runId)).at(-1)?.id ?? 0;
  const choice = await io.ask(approval);
  if (choice === undefined) return false;
  const by = userName(io);
  const answer = { kind: 'approval', step: approval.step, choice, ...(by ? { by } : {}) } as const;
  if (!(await store.post(runId, answer, toTimestamp(io.now()), { lastSeq, lastEntry })))
    writeLines(io.err, `${approval.step} was answered elsewhere in the meantime; your answer was not used`);
  return true;
}

async function showEnd({
  io,
  project,
  store,
  definition,
  options,
  result,
}: SuspendedRunContext & Pick<Execution, 'project' | 'definition' | 'options'>): Promise<void> {
  if (options.json) writeLines(io.out, resultLine(result));
  // If both streams go to one terminal, the commands to type next have to come last.
  const outputFirst = io.isTTY.stdout && io.isTTY.stderr;
  if (outputFirst && result.status === 'completed' && !options.json) writeOutput(io, result.output);
  if (result.status !== 'completed' || !(options.json || options.quiet)) {
    const { formatSummary } = await import('../terminal/index.ts');
    const history = await store.read(result.runId);
    const stateDir = displayPath(io, project.stateDir);
    const { commandSuffix } = project;
    if (!(options.json || options.quiet)) writeLines(io.err, '');
    writeLines(
      io.err,
      formatSummary({
        result,
        history,
        workflow: definition.model,
        stateDir,
        root: displayPath(io, project.state.historyRoot),
        isThere: path => existsSync(join(project.state.historyRoot, path)),
        commandSuffix,
        ...styleOf(io, 'err'),
      }),
    );
  }
  if (!outputFirst && result.status === 'completed' && !options.json) writeOutput(io, result.output);
}

/** Prints the output of a run as JSON: indented in a terminal, on one line in a pipe. */
export function writeOutput(io: CommandIo, output: unknown): void {
  writeLines(io.out, jsonText(output, io.isTTY.stdout ? 2 : 0));
}

interface DisplayOptions {
  /** Whether to print NDJSON on standard output: events as they are committed, then the result. */
  readonly json?: boolean | undefined;
  /** Whether to print no progress. */
  readonly quiet?: boolean | undefined;
  /** Whether to print the output of steps. */
  readonly verbose?: boolean | undefined;
}

/** Opens the progress view that fits the flags and the terminal. */
async function openProgress(
  {
    io,
    project,
    display,
  }: { readonly io: CommandIo; readonly project: Project; readonly display: DisplayOptions },
  shown: { readonly workflow: WorkflowModel; readonly history: readonly HistoryEvent[] },
): Promise<RunReporter> {
  if (display.json) return jsonReporter(io);
  if (display.quiet) return silentReporter(io);
  const { createLiveReporter, createPlainReporter } = await import('../terminal/index.ts');
  const { color, unicode } = styleOf(io, 'err');
  const now = () => io.now();
  if (io.terminal && !display.verbose)
    return createLiveReporter({ stdout: io.terminal, ...shown, color, unicode, now });
  const { commandSuffix } = project;
  const { verbose } = display;
  return createPlainReporter({ write: text => io.err(text), ...shown, color, now, verbose, commandSuffix });
}

function jsonReporter(io: CommandIo): RunReporter {
  const { observe: notice } = silentReporter(io);
  return {
    observe: observation => {
      if (observation.kind === 'events')
        for (const event of observation.events) writeLines(io.out, jsonText(event));
      else notice(observation);
    },
    close: async () => {},
  };
}

/** Prints only notices. */
const silentReporter = (io: CommandIo): RunReporter => ({
  observe: (observation: Observation) => {
    if (observation.kind === 'notice') writeLines(io.err, observation.message);
  },
  close: async () => {},
});

/** Last line of the NDJSON output. */
export const resultLine = (result: RunResult): string => jsonText({ type: 'result', ...result });
