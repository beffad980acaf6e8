/** A position in a file. Lines and columns count from 1. */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** An error as data, as stored in the history, returned by effects and printed by `--json`. */
export interface ErrorData {
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
  /** Class of the thrown error, such as `TypeError`. `retry.on` can match it. */
  readonly name?: string | undefined;
  readonly stack?: string | undefined;
  readonly exitCode?: number | undefined;
}

interface ErrorOptions {
  readonly hint?: string | undefined;
  readonly cause?: unknown;
  readonly position?: Position | undefined;
}

/** Base of every error that Reprise raises on purpose: a stable code, a message and a hint about what to do next. */
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
 * All error codes. `docs/reference/errors.md` is generated from this list. A code never changes its meaning.
 * @public
 */
export const errorCatalogue = {
  // Definitions and input
  DEFINITION_INVALID: 'The workflow definition is invalid; every problem is listed with its position.',
  INPUT_INVALID: 'The input does not match the inputs that the workflow declares.',
  WORKFLOW_NOT_FOUND: 'No workflow has that name or path.',
  NOT_RECORDED: 'The test case has no recording to replay; create one with `reprise test --record`.',
  CASE_NOT_FOUND: 'No test case has that name or path.',
  CANNOT_EXPLORE: 'The test case cannot be explored under other schedules; the message gives the reason.',
  CONFIG_INVALID: 'reprise.yaml or an environment variable has an invalid value.',
  USAGE:
    'The command line has an unknown command or an invalid argument, or an API call has an invalid option.',
  INIT_FAILED: '`reprise init` could not create a file; the message lists the files that it did create.',
  FILE_LIMIT: 'The process may not open enough files; raise the limit with `ulimit -n`.',
  // Runs and their owners
  RUN_NOT_FOUND: 'The store has no run with that id.',
  RUN_AMBIGUOUS: 'Several run ids start with that prefix; type more of the id.',
  RUN_OWNED: 'Another process is executing this run.',
  RUN_ENDED: 'The run has ended, so there is nothing to approve, signal or cancel.',
  NOT_WAITING: 'The step is not waiting for an approval.',
  CHOICE_UNKNOWN: 'The approval does not offer that choice.',
  FENCED: 'Another process took over the run, so this process stopped without changing anything else.',
  SEQUENCE_CONFLICT: 'Another process appended to this history first.',
  // Tasks
  TASK_NOT_FOUND: 'No task with that name is on the branch.',
  TASK_HELD: 'Another worker or person has claimed the task.',
  // History and store
  HISTORY_INVALID: 'A stored history is malformed or contains an impossible sequence of events.',
  HISTORY_DIVERGED: 'The recorded history does not match the workflow definition.',
  DEFINITION_CHANGED: 'Steps that have already run have changed in the definition.',
  STORE_FAILED: 'The event store could not be read or written.',
  STORE_NEWER: 'The store was written by a newer version of Reprise.',
  STORE_OLDER:
    'The store was written by an older Reprise and was opened read-only, so it cannot be migrated.',
  STORE_EMPTY: 'Another process is still creating the store; it is empty so far.',
  // Steps
  STEP_FAILED: 'The function of a step threw an error.',
  EXIT_NONZERO: 'A shell command exited with a code other than 0.',
  KILLED: 'A process was killed by a signal that Reprise did not send.',
  SPAWN_FAILED: 'A process could not be started.',
  TIMEOUT: 'A step, or one of its attempts, exceeded its timeout.',
  OUTPUT_INVALID: 'The output of a step cannot be stored as JSON or does not match its schema.',
  EXPRESSION_FAILED: 'A condition, template or selector could not be evaluated.',
  APPROVAL_REJECTED: 'The approval was answered with `reject`.',
  WAIT_CHANGED: 'After a resume, the step did not repeat the waits that it made before.',
  BUDGET_EXCEEDED: 'The run exceeded its budget.',
  CANCELLED: 'The work was cancelled.',
  SETUP_FAILED: 'A `setup` command of the workspace failed.',
  CHECK_FAILED: 'The work of a step did not pass its `checks`.',
  ARTIFACT_INVALID: 'A declared artifact is missing, is not a file, or is outside the workspace.',
  READONLY_CHANGED: 'A step changed files in a read-only workspace.',
  NO_CANDIDATE: 'Some copies of the step succeeded, but none passed its selection.',
  // Agents
  AGENT_UNKNOWN: 'No agent with that name is defined.',
  AGENT_NOT_FOUND: 'The program of the agent is not installed or not on PATH.',
  AGENT_LOGIN: 'The agent is not logged in, or its key was rejected.',
  AGENT_UNAVAILABLE: "The server of the agent's model failed or could not be reached.",
  AGENT_FAILED: 'The agent reported that it could not do the work.',
  AGENT_PROTOCOL: 'The agent exited without a result, or its output broke its protocol.',
  AGENT_STALLED: 'The agent printed nothing for longer than its `stall_timeout`.',
  AGENT_LIMIT: 'The agent hit a rate limit or used up the quota of its plan.',
  NO_TRANSITION: 'The agent did not end with a valid `<next>` instruction.',
  GIVEN_UP: 'The agent reported that the task cannot be done.',
  PERMISSION_DENIED: 'The agent needed a tool that its permissions do not allow.',
  // Git
  GIT_FAILED: 'A git command failed; the message contains the end of its output.',
  GIT_NOT_FOUND: 'The `git` program is not installed or not on PATH.',
  NOT_A_REPOSITORY: 'The folder is not in a git repository.',
  WORKSPACE_FAILED: 'A workspace could not be created, saved or removed; no work in it was lost.',
  WORKSPACE_ESCAPED: 'The agent changed the repository outside its workspace; the message names the changes.',
  LOCK_STALLED: 'A stalled process holds a lock; the message says how to continue or end it.',
  CANNOT_LAND: 'The work could not be landed; the message gives the reason.',
  CAPTURE_REFUSED: 'The run or its worktree cannot be captured as a test case; the message gives the reason.',
  // Recordings
  REPLAY_DIVERGED: 'A replay behaved differently from the recording, or the recording cannot be replayed.',
  TAPE_INVALID:
    'A tape, a score or a journal is malformed, or the files of a test case do not match each other.',
  SECRET_LEAKED: 'The recording contains a secret or a local path; do not keep or share it.',
  // Internal
  LANE_MISUSE: 'Code inside a lane broke the rules of the effects boundary.',
  DEADLOCK: 'Every lane is waiting, and nothing outside them can wake one.',
  LIVELOCK: 'The lanes keep running, and none of them finishes.',
  INTERNAL: 'A bug in Reprise.',
} as const;

export type ErrorCode = keyof typeof errorCatalogue;

export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(errorCatalogue, code);

/** Converts any thrown value to data. */
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

/** Removes frames of Node's internals: they do not help, and which of them appear depends on timing. */
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

/** Returns the candidate that is most similar to a misspelled word, if one is similar enough. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase(), bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Damerau-Levenshtein distance: swapping neighbors is one edit. Returns `limit` if the lengths differ by that much. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      let cost = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (same ? 0 : 1),
      );
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        cost = Math.min(cost, at(beforeLast, column - 2) + 1);
      }
      current.push(cost);
    }
    beforeLast = last;
    last = current;
  }
  return at(last, b.length);
}

const at = (row: readonly number[], column: number): number => row[column] ?? Number.POSITIVE_INFINITY;
