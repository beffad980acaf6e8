import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { RepriseError } from '../core/errors.ts';
import type { HistoryEvent } from '../core/events.ts';
import { toTimestamp } from '../core/time.ts';
import type { Engine, RunOptions } from '../engine/engine.ts';
import type { Observation } from '../engine/environment.ts';
import type { RunResult, Waiting } from '../engine/run/result.ts';
import { agentsFor } from '../project/agents.ts';
import type { Definition } from '../project/definitions.ts';
import { type ExitCode, exitCodeOfError, exitCodeOfResult, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, lookOf, writeLines } from '../project/host.ts';
import { userName } from '../project/identity.ts';
import { type JournalCommand, resumeLine, withLimits } from '../project/journal/command-line.ts';
import type { RunJournal } from '../project/journal/run-journal.ts';
import { openEngine, storeFile } from '../project/open-engine.ts';
import { displayPath, excludeFromGit, type Project, readConfig, worktreesOf } from '../project/project.ts';
import type { EventStore } from '../store/port.ts';
import type { Reporter } from '../terminal/index.ts';
import { jsonText } from '../terminal/text.ts';
import type { WorkflowModel } from '../workflow/model.ts';
import type { Config } from '../workflow/yaml/config.ts';

export interface DriveOptions extends DisplayOptions {
  readonly maxConcurrent?: number | undefined;
  readonly wait?: boolean | undefined;
}

interface Drive {
  readonly io: CommandIo;
  readonly project: Project;
  readonly definition: Definition;
  readonly options: DriveOptions;
  /** The run that is gone on with, so that what it has done already is shown. */
  readonly runId?: string | undefined;
  /** What does the same again, for the journal. */
  readonly command: JournalCommand;
  /** What is to be done first; answers of a person are followed by a resume. */
  readonly begin: (engine: Engine, options: RunOptions) => Promise<RunResult>;
}

/** Sees a run through in this process, showing it, and asking the person at the keyboard if there is one. */
export async function drive(request: Drive): Promise<ExitCode> {
  const { io, project, definition, options, runId, begin } = request;
  const config = await readConfig(project, io);
  const runOptions = limitsOf({ io, definition, options }, config);
  const agents = await agentsFor(definition.model, { project, io }, async () => config);
  if (!existsSync(storeFile(project.stateDir))) excludeFromGit(project.root);
  /** One after another: each has an engine and a journal of its own, as if it were another process. */
  const leg = async (
    before: string | undefined,
    command: JournalCommand,
    work: (engine: Engine) => Promise<RunResult>,
  ): Promise<Left> => {
    const journal = await openJournal(request, config, command);
    let exit: ExitCode = exitCodes.failed;
    try {
      let progress: Reporter | undefined;
      const { engine, store, close } = await openEngine({
        ...project,
        ...(journal ? { host: journal.host } : {}),
        env: io.env,
        agents,
        worktrees: worktreesOf(project, config),
        observe: observation => progress?.observe(observation),
      });
      try {
        const history = before === undefined ? [] : await store.read(before);
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
  let left = await leg(runId, request.command, engine => begin(engine, runOptions));
  while (left.isAnswered) {
    const { runId } = left.result;
    left = await leg(runId, resumeLine(runId), engine =>
      engine.resume({ ...runOptions, workflow: definition.model, runId }),
    );
  }
  return exitCodeOfResult(left.result);
}

/** How things stand when the engine has left a run. */
interface Left {
  readonly result: RunResult;
  /** A person has answered what it waited for. */
  readonly isAnswered: boolean;
}

/** Not where something stands in for the real world, and not if the project wants none. */
async function openJournal(
  { io, project, definition, options }: Drive,
  config: Config,
  command: JournalCommand,
): Promise<RunJournal | undefined> {
  if (project.host || config.record === false) return undefined;
  const { openRunJournal } = await import('../project/journal/run-journal.ts');
  const places = options.maxConcurrent ?? placesFromEnv(io);
  return openRunJournal({
    io,
    project,
    command: withLimits(command, { places, wait: options.wait }),
    source: definition.source,
  });
}

/** Flag, environment, workflow, project: the first that says something. Throws CONFIG_INVALID. */
function limitsOf(
  { io, definition, options }: Pick<Drive, 'io' | 'definition' | 'options'>,
  config: Config,
): RunOptions {
  const { model } = definition;
  return {
    maxConcurrentWorkers:
      options.maxConcurrent ?? placesFromEnv(io) ?? model.maxConcurrentWorkers ?? config.maxConcurrentWorkers,
    budgetMs: model.budgetMs ?? config.budgetMs,
    budget: model.budget ?? config.budget,
    interrupt: io.interrupt,
    wait: options.wait,
  };
}

const placesVariable = 'REPRISE_MAX_CONCURRENT_WORKERS';

function placesFromEnv({ env }: CommandIo): number | undefined {
  const text = env[placesVariable];
  if (!text) return undefined;
  if (/^[1-9]\d*$/.test(text)) return Number(text);
  throw new RepriseError(
    'CONFIG_INVALID',
    `${placesVariable} must be a whole number from 1, not ${JSON.stringify(text)}`,
    { hint: `for example ${placesVariable}=4` },
  );
}

interface Stop {
  readonly io: CommandIo;
  readonly store: EventStore;
  readonly result: RunResult;
}

/** Whether a person answered what the run waits for. */
async function answerOne({ io, store, result }: Stop): Promise<boolean> {
  if (result.status !== 'suspended' || !io.ask || io.interrupt.aborted) return false;
  const gate = result.waiting.find(
    (waiting): waiting is Waiting & { on: 'approval' } => waiting.on === 'approval',
  );
  if (!gate) return false;
  const choice = await io.ask(gate);
  if (choice === undefined) return false;
  const by = userName(io);
  await store.post(
    result.runId,
    { kind: 'approval', step: gate.step, choice, ...(by ? { by } : {}) },
    toTimestamp(io.now()),
  );
  return true;
}

async function showEnd({
  io,
  project,
  store,
  definition,
  options,
  result,
}: Stop & Pick<Drive, 'project' | 'definition' | 'options'>): Promise<void> {
  if (options.json) writeLines(io.out, resultLine(result));
  // On one screen, what to type next must not scroll away.
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
        root: displayPath(io, project.root),
        isThere: path => existsSync(join(project.root, path)),
        commandSuffix,
        ...lookOf(io, 'err'),
      }),
    );
  }
  if (!outputFirst && result.status === 'completed' && !options.json) writeOutput(io, result.output);
}

/** The output of a run, as data: indented for eyes, one line for programs. */
export function writeOutput(io: CommandIo, output: unknown): void {
  writeLines(io.out, jsonText(output, io.isTTY.stdout ? 2 : 0));
}

interface DisplayOptions {
  /** NDJSON on standard output: the events as they are committed, then the result. */
  readonly json?: boolean | undefined;
  /** Nothing while it runs. */
  readonly quiet?: boolean | undefined;
  /** With what the steps print. */
  readonly verbose?: boolean | undefined;
}

/** What is shown while a run goes on: the view that fits the flags and the terminal. */
async function openProgress(
  {
    io,
    project,
    display,
  }: { readonly io: CommandIo; readonly project: Project; readonly display: DisplayOptions },
  shown: { readonly workflow: WorkflowModel; readonly history: readonly HistoryEvent[] },
): Promise<Reporter> {
  if (display.json) return jsonReporter(io);
  if (display.quiet) return silentReporter(io);
  const { createLiveReporter, createPlainReporter } = await import('../terminal/index.ts');
  const { color, unicode } = lookOf(io, 'err');
  const now = () => io.now();
  if (io.terminal && !display.verbose)
    return createLiveReporter({ stdout: io.terminal, ...shown, color, unicode, now });
  const { commandSuffix } = project;
  const { verbose } = display;
  return createPlainReporter({ write: text => io.err(text), ...shown, color, now, verbose, commandSuffix });
}

function jsonReporter(io: CommandIo): Reporter {
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

/** What somebody has to know even so. */
const silentReporter = (io: CommandIo): Reporter => ({
  observe: (observation: Observation) => {
    if (observation.kind === 'notice') writeLines(io.err, observation.message);
  },
  close: async () => {},
});

/** The last line of NDJSON. */
export const resultLine = (result: RunResult): string => jsonText({ type: 'result', ...result });
