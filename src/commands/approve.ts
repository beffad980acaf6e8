import { type HistoryEvent, nearest, RepriseError, toTimestamp } from '../core/index.ts';
import type { Waiting } from '../engine/index.ts';
import { unitOfEvent } from '../engine/state/index.ts';
import {
  type CommandIo,
  type ExitCode,
  exitCodes,
  findProject,
  ownershipOf,
  type Project,
  type ProjectOptions,
  requireNotEnded,
  selectRun,
  userName,
  withStoredRuns,
  writeLines,
} from '../project/index.ts';
import type { EventStore, InboxEntry, RunSummary } from '../store/index.ts';
import { runStatusOf } from '../view/index.ts';
import { workerSource } from '../worker/index.ts';
import { jsonOrText } from './inputs.ts';

interface ApproveCommandOptions extends ProjectOptions {
  /** Run id, a prefix of it, or the id of a task whose run waits. */
  readonly run: string;
  /** Step to answer. Required only if several approvals are waiting. */
  readonly step?: string | undefined;
  readonly choice?: string | undefined;
  /** Short for the choice `reject`. */
  readonly reject?: boolean | undefined;
  readonly comment?: string | undefined;
  readonly by?: string | undefined;
}

type WaitingApproval = Extract<Waiting, { on: 'approval' }>;

/** Answers an approval, whether or not a process owns the run. Throws RUN_ENDED, NOT_WAITING, CHOICE_UNKNOWN. */
export async function approveCommand(
  { io }: { readonly io: CommandIo },
  options: ApproveCommandOptions,
): Promise<ExitCode> {
  const { choice, reject, comment } = options;
  if (choice !== undefined && reject)
    throw new RepriseError('USAGE', '--choice and --reject cannot be combined');
  const project = findProject(io, options);
  const answered = await withStoredRuns({ project, mode: 'writable' }, async store => {
    const run = await selectRun(store, (await runOfTask(store, options.run)) ?? options.run);
    requireNotEnded(run, 'approve');
    const { runId } = run;
    const by = options.by ?? userName(io);
    for (;;) {
      const history = await store.read(runId);
      const inbox = await store.inbox(runId);
      const { waiting, source } = runStatusOf(runId, history);
      const requested = waiting.filter((wait): wait is WaitingApproval => wait.on === 'approval');
      const given = answersIn(history, inbox);
      const approvals = unanswered(requested, { io, project, run, step: options.step, given });
      const approval = chooseApproval({ runId, approvals, step: options.step, given });
      const answer = chooseAnswer({ runId, approval, choice: reject ? 'reject' : choice });
      const message = {
        kind: 'approval',
        step: approval.step,
        choice: answer,
        ...(by ? { by } : {}),
        ...(comment ? { comment } : {}),
      } as const;
      const seen = { lastSeq: history.length, lastEntry: inbox.at(-1)?.id ?? 0 };
      // Otherwise another answer, or another event, came first: look again.
      if (!(await store.post(runId, message, toTimestamp(io.now()), seen))) continue;
      const isFree = ownershipOf(run, project).kind !== 'held';
      const continues = source === workerSource && isFree;
      const next = continues ? 'continuing the run' : nextText(run, { project });
      writeLines(io.err, `answered ${approval.step} of run ${runId} with ${answer}; ${next}`);
      return continues ? runId : undefined;
    }
  });
  return answered === undefined ? exitCodes.ok : continueWorkerRun({ io }, answered, options);
}

/** Returns the run that holds a task and waits. */
async function runOfTask(store: EventStore, task: string): Promise<string | undefined> {
  const claims = await store.claims.list();
  return claims.find(claim => claim.task === task && claim.runStatus === 'waiting')?.runId ?? undefined;
}

/** Continues the run of a worker after an answer: lands or parks its work. No agent is asked, unless there is a conflict. */
export async function continueWorkerRun(
  { io }: { readonly io: CommandIo },
  run: string,
  { stateDir }: ProjectOptions,
): Promise<ExitCode> {
  const { workerCommand } = await import('./worker.ts');
  const { defer, ...direct } = io;
  const work = (own: CommandIo = direct) => workerCommand({ io: own }, { run, stateDir });
  if (!defer) return work();
  defer(work);
  return exitCodes.ok;
}

/** Answer that a step has got, such as `approve by ana`. */
type GivenAnswers = ReadonlyMap<string, string>;

/** Answers of all steps. One that is still in the inbox counts: the run reads only the first one. */
function answersIn(history: readonly HistoryEvent[], inbox: readonly InboxEntry[]): GivenAnswers {
  const answers = new Map<string, string>();
  const text = ({ choice, by }: { readonly choice: string; readonly by?: string | undefined }) =>
    by ? `${choice} by ${by}` : choice;
  for (const event of history) {
    if (event.type === 'approval.requested') answers.delete(unitPath(event));
    if (event.type === 'approval.given') answers.set(unitPath(event), text(event.data));
  }
  for (const { message } of inbox) {
    if (message.kind === 'approval' && !answers.has(message.step)) answers.set(message.step, text(message));
  }
  return answers;
}

const unitPath = (event: HistoryEvent): string => unitOfEvent(event) ?? '';

interface AnswerContext {
  readonly io: CommandIo;
  readonly project: Project;
  readonly run: RunSummary;
  readonly step: string | undefined;
  readonly given: GivenAnswers;
}

/** Approvals without an answer. Throws NOT_WAITING if the chosen step, or every step, has an answer. */
function unanswered(
  approvals: readonly WaitingApproval[],
  { project, run, step, given: answers }: AnswerContext,
): readonly WaitingApproval[] {
  const open = approvals.filter(each => !answers.has(each.step));
  const closed = approvals.find(each => answers.has(each.step) && each.step === (step ?? each.step));
  if (!closed || (step === undefined && open.length > 0)) return open;
  const answer = answers.get(closed.step);
  throw new RepriseError(
    'NOT_WAITING',
    `step ${closed.step} of run ${run.runId} was already answered with ${answer}`,
    {
      hint: nextText(run, { project }),
    },
  );
}

interface ApprovalChoice {
  readonly runId: string;
  readonly approvals: readonly WaitingApproval[];
  readonly step: string | undefined;
  readonly given: GivenAnswers;
}

function chooseApproval({ runId, approvals, step, given }: ApprovalChoice): WaitingApproval {
  const [only, ...others] = approvals;
  const found = step === undefined ? only : approvals.find(each => each.step === step);
  const [answered, answer] = [...given].findLast(([path]) => path === (step ?? path)) ?? [];
  if (!found && answered !== undefined && (step !== undefined || !only)) {
    throw new RepriseError(
      'NOT_WAITING',
      `step ${answered} of run ${runId} was already answered with ${answer}`,
      { hint: `see its status: reprise show ${runId}` },
    );
  }
  if (!only) {
    throw new RepriseError('NOT_WAITING', `no step of run ${runId} is waiting for an approval`, {
      hint: `see its status: reprise show ${runId}`,
    });
  }
  const lines = approvals
    .map(each => `  ${each.step}: ${each.message} (${each.choices.join(', ')})`)
    .join('\n');
  if (!found) {
    throw new RepriseError(
      'NOT_WAITING',
      `step ${step} of run ${runId} is not waiting for an approval; these steps are:\n${lines}`,
      {
        hint: `answer one: reprise approve ${runId} ${
          nearest(
            step ?? '',
            approvals.map(each => each.step),
          ) ?? only.step
        }`,
      },
    );
  }
  if (step === undefined && others.length > 0) {
    throw new RepriseError(
      'NOT_WAITING',
      `several steps of run ${runId} are waiting for an approval:\n${lines}`,
      {
        hint: `name one: reprise approve ${runId} ${only.step}`,
      },
    );
  }
  return found;
}

/** The choice, which defaults to `approve` or to the only one that is offered. Throws CHOICE_UNKNOWN. */
function chooseAnswer({
  runId,
  approval,
  choice,
}: {
  readonly runId: string;
  readonly approval: WaitingApproval;
  readonly choice: string | undefined;
}): string {
  const { choices, step } = approval;
  const answer =
    choice ?? (choices.includes('approve') ? 'approve' : choices.length === 1 ? choices[0] : undefined);
  if (answer !== undefined && choices.includes(answer)) return answer;
  const list = choices.join(', ');
  const message =
    answer === undefined
      ? `step ${step} needs a choice: ${list}`
      : `step ${step} has no choice ${answer}; its choices are ${list}`;
  const guess = (answer && nearest(answer, choices)) ?? choices[0];
  throw new RepriseError('CHOICE_UNKNOWN', message, {
    hint: `answer with: reprise approve ${runId} ${step} --choice ${guess}`,
  });
}

interface SignalCommandOptions extends ProjectOptions {
  readonly run: string;
  readonly name: string;
  /** JSON. Anything else is sent as text. */
  readonly payload?: string | undefined;
}

/** Sends a signal to a run, which keeps it until a step waits for it. Throws RUN_ENDED. */
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
    writeLines(io.err, `sent ${name} to run ${run.runId}; ${nextText(run, { project })}`);
    const { waiting } = runStatusOf(run.runId, await store.read(run.runId));
    const names = waiting.flatMap(wait => (wait.on === 'signal' ? wait.signal : []));
    if (!names.includes(name)) writeLines(io.err, unexpectedSignal(run, name, names));
    return exitCodes.ok;
  });
}

function unexpectedSignal({ runId }: RunSummary, name: string, names: readonly string[]): string {
  const guess = nearest(name, names) ?? names[0];
  const question = guess === undefined ? '' : `; did you mean ${guess}?`;
  return `warning: no step of run ${runId} waits for signal ${name}; the run keeps it in case one does later${question}`;
}

/** Says whether a process will read a message in the inbox of a run, or which command makes one read it. */
function nextText(run: RunSummary, { project }: { readonly project: Project }): string {
  const ownership = ownershipOf(run, project);
  return ownership.kind === 'held'
    ? `process ${ownership.owner.pid} on ${ownership.owner.host} continues the run`
    : `continue with: reprise resume ${run.runId}${project.commandSuffix}`;
}
