import { RepriseError } from '../core/errors.ts';
import { nearest } from '../core/suggest.ts';
import { toTimestamp } from '../core/time.ts';
import type { Waiting } from '../engine/run/result.ts';
import { type ExitCode, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, writeLines } from '../project/host.ts';
import { userName } from '../project/identity.ts';
import { findProject, type Project, type ProjectOptions } from '../project/project.ts';
import { ownershipOf, requireNotEnded, selectRun, withStoredRuns } from '../project/runs.ts';
import type { EventStore, RunSummary } from '../store/port.ts';
import { standingOf } from '../view/run-status.ts';
import { jsonOrText } from './inputs.ts';

interface ApproveCommandOptions extends ProjectOptions {
  readonly run: string;
  /** Needed only if several wait. */
  readonly step?: string | undefined;
  readonly choice?: string | undefined;
  /** Short for the choice `reject`. */
  readonly reject?: boolean | undefined;
  readonly comment?: string | undefined;
  readonly by?: string | undefined;
}

type Gate = Extract<Waiting, { on: 'approval' }>;

/** Answers a gate of a run, whoever has it. Throws RUN_ENDED, NOT_WAITING, CHOICE_UNKNOWN. */
export async function approveCommand(
  { io }: { readonly io: CommandIo },
  options: ApproveCommandOptions,
): Promise<ExitCode> {
  const { choice, reject, comment } = options;
  if (choice !== undefined && reject)
    throw new RepriseError('USAGE', '--choice and --reject exclude each other');
  const project = findProject(io, options);
  return withStoredRuns({ project, mode: 'writable' }, async store => {
    const run = await selectRun(store, options.run);
    requireNotEnded(run, 'approve');
    const { runId } = run;
    const { waiting } = standingOf(runId, await store.read(runId));
    const asking = waiting.filter((wait): wait is Gate => wait.on === 'approval');
    const gates = await withoutAnswer(asking, { io, project, store, run, step: options.step });
    const gate = chooseGate({ runId, gates, step: options.step });
    const answer = chooseAnswer({ runId, gate, choice: reject ? 'reject' : choice });
    const by = options.by ?? userName(io);
    await store.post(
      runId,
      {
        kind: 'approval',
        step: gate.step,
        choice: answer,
        ...(by ? { by } : {}),
        ...(comment ? { comment } : {}),
      },
      toTimestamp(io.now()),
    );
    writeLines(
      io.err,
      `answered ${gate.step} of run ${runId} with ${answer}; ${whatHappensNext(run, { io, project })}`,
    );
    return exitCodes.ok;
  });
}

interface Answered {
  readonly io: CommandIo;
  readonly project: Project;
  readonly store: EventStore;
  readonly run: RunSummary;
  readonly step: string | undefined;
}

/** Those that nobody has answered: an answer that waits to be read counts, and a second one would be lost. */
async function withoutAnswer(
  gates: readonly Gate[],
  { io, project, store, run, step }: Answered,
): Promise<readonly Gate[]> {
  const answers = new Map<string, string>();
  for (const { message } of await store.inbox(run.runId)) {
    if (message.kind === 'approval') answers.set(message.step, message.choice);
  }
  const open = gates.filter(gate => !answers.has(gate.step));
  const closed = gates.find(gate => answers.has(gate.step) && gate.step === (step ?? gate.step));
  if (!closed || (step === undefined && open.length > 0)) return open;
  const answer = answers.get(closed.step);
  throw new RepriseError(
    'NOT_WAITING',
    `step ${closed.step} of run ${run.runId} was answered already, with ${answer}`,
    {
      hint: whatHappensNext(run, { io, project }),
    },
  );
}

interface GateChoice {
  readonly runId: string;
  readonly gates: readonly Gate[];
  readonly step: string | undefined;
}

function chooseGate({ runId, gates, step }: GateChoice): Gate {
  const [only, ...others] = gates;
  const found = step === undefined ? only : gates.find(gate => gate.step === step);
  if (!only) {
    throw new RepriseError('NOT_WAITING', `no step of run ${runId} waits for an approval`, {
      hint: `see where it stands: reprise show ${runId}`,
    });
  }
  const lines = gates.map(gate => `  ${gate.step}: ${gate.message} (${gate.choices.join(', ')})`).join('\n');
  if (!found) {
    throw new RepriseError(
      'NOT_WAITING',
      `step ${step} of run ${runId} does not wait for an approval; these do:\n${lines}`,
      {
        hint: `answer one: reprise approve ${runId} ${
          nearest(
            step ?? '',
            gates.map(gate => gate.step),
          ) ?? only.step
        }`,
      },
    );
  }
  if (step === undefined && others.length > 0) {
    throw new RepriseError('NOT_WAITING', `several steps of run ${runId} wait for an approval:\n${lines}`, {
      hint: `name one: reprise approve ${runId} ${only.step}`,
    });
  }
  return found;
}

/** Saying nothing else means `approve`, or the only choice that there is. */
function chooseAnswer({
  runId,
  gate,
  choice,
}: {
  readonly runId: string;
  readonly gate: Gate;
  readonly choice: string | undefined;
}): string {
  const { choices, step } = gate;
  const answer =
    choice ?? (choices.includes('approve') ? 'approve' : choices.length === 1 ? choices[0] : undefined);
  if (answer !== undefined && choices.includes(answer)) return answer;
  const message =
    answer === undefined ? `step ${step} asks for a choice` : `step ${step} does not offer ${answer}`;
  const guess = (answer && nearest(answer, choices)) ?? choices[0];
  throw new RepriseError('CHOICE_UNKNOWN', `${message}: ${choices.join(', ')}`, {
    hint: `answer with: reprise approve ${runId} ${step} --choice ${guess}`,
  });
}

interface SignalCommandOptions extends ProjectOptions {
  readonly run: string;
  readonly name: string;
  /** JSON; anything else is taken as text. */
  readonly payload?: string | undefined;
}

/** Sends a signal to a run; one that nobody waits for yet is kept. Throws RUN_ENDED. */
export async function signalCommand(
  { io }: { readonly io: CommandIo },
  options: SignalCommandOptions,
): Promise<ExitCode> {
  const { name, payload: text } = options;
  const project = findProject(io, options);
  return withStoredRuns({ project, mode: 'writable' }, async store => {
    const run = await selectRun(store, options.run);
    requireNotEnded(run, 'signal');
    const payload = text === undefined ? null : jsonOrText(text);
    const by = userName(io);
    await store.post(
      run.runId,
      { kind: 'signal', name, payload, ...(by ? { by } : {}) },
      toTimestamp(io.now()),
    );
    writeLines(io.err, `sent ${name} to run ${run.runId}; ${whatHappensNext(run, { io, project })}`);
    return exitCodes.ok;
  });
}

/** Who takes a message that was left for a run. */
function whatHappensNext(
  run: RunSummary,
  { io, project }: { readonly io: CommandIo; readonly project: Project },
): string {
  const ownership = ownershipOf(run, io.now());
  return ownership.kind === 'held'
    ? `process ${ownership.owner.pid} on ${ownership.owner.host} goes on with it`
    : `continue with: reprise resume ${run.runId}${project.commandSuffix}`;
}
