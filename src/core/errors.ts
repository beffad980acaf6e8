/** Where in a file something is: lines and columns count from 1. */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** An error as data: what history keeps, what effects answer, what `--json` prints. */
export interface ErrorData {
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
  /** The class of a thrown error, such as `TypeError`, so that a retry rule can name it. */
  readonly name?: string | undefined;
  readonly stack?: string | undefined;
  readonly exitCode?: number | undefined;
}

export interface ErrorOptions {
  readonly hint?: string | undefined;
  readonly cause?: unknown;
  readonly position?: Position | undefined;
}

/** Every error that Reprise raises on purpose: a stable code, what happened, and what to do next. */
export class RepriseError extends Error {
  override readonly name: string = 'RepriseError';
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly position: Position | undefined;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint;
    this.position = options.position;
  }
}

/**
 * The catalogue. `docs/reference/errors.md` is generated from it; a code never changes its meaning.
 * @public
 */
export const errorCatalogue = {
  // Definitions and input
  DEFINITION_INVALID: 'The workflow definition has problems; all of them are listed with their positions.',
  INPUT_INVALID: 'The input does not fit what the workflow declares.',
  WORKFLOW_NOT_FOUND: 'No workflow with that name or path.',
  NOT_RECORDED: 'A test case has no recording that could be replayed.',
  CASE_NOT_FOUND: 'No test case with that name or path.',
  CANNOT_EXPLORE: 'The case cannot be played in other orders as it is.',
  CONFIG_INVALID: 'reprise.yaml or an environment variable has an invalid value.',
  USAGE: 'The command line is not one that Reprise understands.',
  INIT_FAILED: 'A file that sets a project up could not be made; the message says which were.',
  // Runs and their owners
  RUN_NOT_FOUND: 'No run with that id in this store.',
  RUN_AMBIGUOUS: 'Several runs start with that id.',
  RUN_OWNED: 'Another process is running this run.',
  RUN_ENDED: 'The run has ended, so there is nothing to approve, signal or cancel.',
  NOT_WAITING: 'The step does not wait for an approval.',
  CHOICE_UNKNOWN: 'The approval does not offer that choice.',
  FENCED: 'This process lost the run to another owner and stopped before doing anything more.',
  SEQUENCE_CONFLICT: 'Somebody else appended to this history first.',
  // Tasks
  TASK_NOT_FOUND: 'No task with that name is on the branch.',
  TASK_HELD: 'Somebody else has the task.',
  // History and store
  HISTORY_INVALID: 'A stored history is malformed or impossible.',
  HISTORY_DIVERGED: 'The recorded history does not fit the definition.',
  DEFINITION_CHANGED: 'Steps that already ran have changed since.',
  STORE_FAILED: 'The event store could not be read or written.',
  STORE_NEWER: 'The store was written by a newer Reprise.',
  STORE_EMPTY: 'The store is being made, and nothing is in it yet.',
  // Steps
  STEP_FAILED: 'The function of a step threw an error.',
  EXIT_NONZERO: 'A shell command ended with an exit code other than 0.',
  KILLED: 'A process was ended by a signal that Reprise did not send.',
  SPAWN_FAILED: 'A process could not be started.',
  TIMEOUT: 'A step or one of its attempts took longer than allowed.',
  OUTPUT_INVALID: 'The output of a step cannot be stored as JSON or does not fit its schema.',
  EXPRESSION_FAILED: 'A condition, template or selector could not be evaluated.',
  APPROVAL_REJECTED: 'A person answered the gate with `reject`.',
  WAIT_CHANGED: 'A step asked for other waits than it did before it was resumed.',
  BUDGET_EXCEEDED: 'The run used up its budget.',
  CANCELLED: 'The work was cancelled.',
  SETUP_FAILED: 'A command that makes a workspace ready failed.',
  CHECK_FAILED: 'A check of a step did not pass on the work that was done.',
  ARTIFACT_INVALID: 'A declared artifact is missing, is not a file, or is outside of the workspace.',
  READONLY_CHANGED: 'Something was changed in a workspace in which nothing may be.',
  NO_CANDIDATE: 'None of the workers that succeeded could be selected.',
  // Agents
  AGENT_UNKNOWN: 'No agent with that name is defined.',
  AGENT_NOT_FOUND: 'The program of an agent is not installed or not on PATH.',
  AGENT_LOGIN: 'The agent is not logged in, or its key was refused.',
  AGENT_FAILED: 'The agent said that it could not do the work.',
  AGENT_PROTOCOL: 'The agent ended without a result, or said something that it must not say.',
  AGENT_STALLED: 'The agent was silent for longer than its `stall_timeout`.',
  AGENT_LIMIT: 'The agent ran into a rate limit, or its plan is used up for now.',
  NO_TRANSITION: 'An agent did not say in a way that can be followed what is to happen next.',
  GIVEN_UP: 'An agent said that the task cannot be done.',
  PERMISSION_DENIED: 'The agent needed something that its permissions do not allow.',
  // Git
  GIT_FAILED: 'A git command failed; the message holds the end of what it said.',
  GIT_NOT_FOUND: 'There is no git on this machine.',
  NOT_A_REPOSITORY: 'The folder is not in a git repository.',
  WORKSPACE_FAILED: 'A workspace could not be made, saved or removed; nothing in it was lost.',
  CANNOT_LAND: 'There is no such branch to land on, or nothing that could be landed on it.',
  CAPTURE_REFUSED: 'What is in a worktree or a repository cannot be captured as a test case.',
  // Tapes
  REPLAY_DIVERGED: 'A replay did something else than what was recorded, or the recording cannot be replayed.',
  TAPE_INVALID: 'A tape, a score or a journal is malformed, or the files of a case do not fit together.',
  SECRET_LEAKED: 'A recording holds a secret, or a path of this machine; it must not be kept or shared.',
  // Inside
  LANE_MISUSE: 'Code inside a lane broke the rules of the effects boundary.',
  DEADLOCK: 'Every lane waits and nothing outside can wake one of them.',
  LIVELOCK: 'Lanes go on and on, and none of them comes to an end.',
  INTERNAL: 'A bug in Reprise.',
} as const;

export type ErrorCode = keyof typeof errorCatalogue;

export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(errorCatalogue, code);

/** Describes anything that can be thrown. */
export function toErrorData(thrown: unknown): ErrorData {
  if (thrown instanceof RepriseError) {
    return { code: thrown.code, message: thrown.message, ...(thrown.hint ? { hint: thrown.hint } : {}) };
  }
  if (thrown instanceof Error) {
    const code = 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : 'STEP_FAILED';
    return {
      code,
      message: thrown.message || thrown.name,
      name: thrown.name,
      ...(thrown.stack ? { stack: withoutInternals(thrown.stack) } : {}),
    };
  }
  return { code: 'STEP_FAILED', message: describeThrown(thrown) };
}

/** Frames of Node itself tell nothing, and come and go with timing. */
function withoutInternals(stack: unknown): string {
  const lines = String(stack).split('\n');
  return lines.filter(line => !/^\s+at .*\bnode:/.test(line)).join('\n');
}

function describeThrown(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown;
  try {
    return `threw ${JSON.stringify(thrown) ?? String(thrown)}`;
  } catch {
    return `threw ${Object.prototype.toString.call(thrown)}`;
  }
}
