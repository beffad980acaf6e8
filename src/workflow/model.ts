import { copyJson, type ErrorData, type Json, type JsonObject, type Position } from '../core/index.ts';

/**
 * A loaded workflow, whether it was written in YAML or in TypeScript. The engine sees only this model.
 * Selectors are pure functions of the values that a step may read. Each is called once, and its result is recorded.
 */
export interface WorkflowModel {
  readonly name: string;
  readonly description?: string | undefined;
  /** Absolute path of the file that defines the workflow. */
  readonly file?: string | undefined;
  readonly input: InputContract;
  /** Steps in the order in which they were written. */
  readonly steps: readonly StepModel[];
  readonly onFailure: FailurePolicy;
  /** Overrides `runtime.max_concurrent_workers`. */
  readonly maxConcurrentWorkers?: number | undefined;
  /** Limit on the wall time of the run, over all resumes. */
  readonly budgetMs?: number | undefined;
  /** Limits on the cost and tokens of all agents of the run, including those of child workflows. */
  readonly budget?: SpendingLimit | undefined;
  /** Output of the run. Defaults to an object with the output of every step that no other step needs. */
  readonly output?: Selector<Json> | undefined;
}

export type FailurePolicy = 'fail-fast' | 'finish-running' | 'continue';
export const failurePolicies = [
  'fail-fast',
  'finish-running',
  'continue',
] as const satisfies readonly FailurePolicy[];

export interface SpendingLimit {
  readonly costUsd?: number | undefined;
  /** Limit on input and output tokens together. */
  readonly tokens?: number | undefined;
}

export interface StepModel {
  /** Id that is unique within its workflow and matches `[A-Za-z_][A-Za-z0-9_-]*`. */
  readonly id: string;
  readonly needs: readonly Need[];
  readonly condition?: Selector<boolean> | undefined;
  /** If true, a failure of this step does not fail the run. */
  readonly optional: boolean;
  readonly retry?: RetryRule | undefined;
  readonly timeout: TimeoutRule;
  /** Limits on the cost and tokens of the agents of the step, over all attempts and copies. */
  readonly budget?: SpendingLimit | undefined;
  /** Rule that turns the step into several copies. All other fields then apply to each copy. */
  readonly fanOut?: FanOut | undefined;
  readonly body: Body;
  /** Hash of everything that defines the step. A resume compares it to detect a changed definition. */
  readonly fingerprint: string;
  /** Position of the step in its file. */
  readonly position?: Position | undefined;
}

export interface Need {
  readonly id: string;
  /** If true, the step runs no matter how this dependency ended (`if: always()`, `maybe(handle)`). */
  readonly tolerant: boolean;
}

/** The only values that a step may read: the input of the run and its declared dependencies. */
export interface Scope {
  readonly inputs: Json;
  /** Declared dependencies by step id. */
  readonly steps: Readonly<Record<string, StepView>>;
  /** Matrix values of this copy, if the step fans out over a matrix. */
  readonly matrix?: JsonObject | undefined;
  /** Combined status of all earlier steps that this one depends on, for `success()`, `failure()` and `cancelled()`. */
  readonly status: 'success' | 'failure' | 'cancelled';
}

export interface StepView {
  /** Same meaning as in GitHub Actions: `conclusion` is `success` for an optional step that failed. */
  readonly outcome: 'success' | 'failure' | 'cancelled' | 'skipped';
  readonly conclusion: 'success' | 'failure' | 'cancelled' | 'skipped';
  /** `undefined` unless the step succeeded. A fan-out always has outputs: the results of its copies. */
  readonly outputs: Json | undefined;
  /** Absolute paths of the step's artifacts, by name. */
  readonly artifacts?: Readonly<Record<string, string>> | undefined;
  /** Branch with the step's work, if it has a workspace. For a fan-out, the branch of the selected copy. */
  readonly branch?: string | undefined;
  /** Last commit on that branch. */
  readonly commit?: string | undefined;
}

export type Selector<T> = (scope: Scope) => T;

export interface RetryRule {
  /** Total number of attempts, including the first. */
  readonly attempts: number;
  readonly backoff: { readonly initialMs: number; readonly factor: number; readonly maxMs: number };
  /** Decides which errors are retried. Defaults to all of them. */
  readonly retries?: ((error: ErrorData) => boolean) | undefined;
}

export interface TimeoutRule {
  /** Timeout of a single attempt. A timed-out attempt counts as a failure and may be retried. */
  readonly attemptMs?: number | undefined;
  /** Timeout of the whole step, including all attempts and the waits between them. Never retried. */
  readonly stepMs?: number | undefined;
  /** Longest time that an agent may stay silent. A stalled attempt counts as a failure and may be retried. */
  readonly stallMs?: number | undefined;
}

/** Rule for a step that runs as several parallel copies. */
export interface FanOut {
  /** `concurrency`: identical copies. `matrix`: one copy for each item. */
  readonly kind: 'concurrency' | 'matrix';
  /** One object for each copy, in order. Empty objects for identical copies. */
  readonly items: Selector<readonly JsonObject[]>;
  /** Number of copies, if it is known before the run. */
  readonly copies?: number | undefined;
  /** Maximum number of copies that run in parallel, in addition to the limit of the run. */
  readonly maxParallel?: number | undefined;
  readonly onFailure: FailurePolicy;
  /** Rule that picks the best successful copy. With it, the step succeeds if at least one copy does. */
  readonly select?: SelectRule | undefined;
}

export interface SelectRule {
  /** Commands that must pass in the workspace of each candidate. */
  readonly gates: readonly Command[];
  /** Command that prints the score of a candidate as its last line. The highest score wins. */
  readonly rank?: Command | undefined;
  readonly judge?: Judge | undefined;
}

/** Agent that sees the changes of all candidates and picks one. */
export interface Judge {
  readonly agent: string;
  /** Criteria for the choice. */
  readonly prompt?: Selector<string> | undefined;
  /** Position of the reference in its file. */
  readonly position?: Position | undefined;
}

export type Body = FunctionBody | RunBody | AgentBody | UsesBody | ApproveBody | LandBody | BuiltInBody;

/** A shell command beside the main work of a step. */
export interface Command {
  /** Command as written in the definition, for messages and permissions. */
  readonly text: string;
  readonly command: Selector<ShellCommand>;
}

/** Workspace of a script or an agent, and the commands that run around it. */
export interface WorkRules {
  readonly workspace: WorkspaceRule;
  /** Commands that run in the workspace before the work. */
  readonly setup: readonly Command[];
  /** Commands that run after the work, even if it failed. */
  readonly teardown: readonly Command[];
  /** Commands that must pass for the work to succeed. */
  readonly checks: readonly Command[];
  readonly artifacts: readonly ArtifactRule[];
}

export interface ArtifactRule {
  readonly name: string;
  /** Path relative to the workspace. */
  readonly path: string;
}

export type WorkspaceRule =
  /** The step works in the project's own folder. */
  | { readonly kind: 'none' }
  | {
      readonly kind: 'worktree';
      /** If true, the step must not change any file, and nothing is committed. */
      readonly readonly: boolean;
      readonly base: WorkspaceBase;
      /** Name of the branch. Defaults to a name that the run generates. */
      readonly branch?: Selector<string> | undefined;
    };

/** Commit that a workspace starts from: the base of the run, the last commit of a needed step, or a named ref. */
export type WorkspaceBase =
  | { readonly kind: 'run' }
  | { readonly kind: 'step'; readonly id: string }
  | { readonly kind: 'ref'; readonly name: Selector<string> };

export interface FunctionBody {
  readonly kind: 'function';
  readonly run: (scope: Scope, ctx: StepContext) => unknown;
  /** Validates the output and may transform it. Throws if it is invalid. */
  readonly parseOutput?: ((output: unknown) => unknown) | undefined;
}

export interface RunBody {
  readonly kind: 'run';
  readonly command: Selector<ShellCommand>;
  readonly parseOutput?: ((output: unknown) => unknown) | undefined;
  /** Without it, the step works in the project's own folder. */
  readonly work?: WorkRules | undefined;
}

export interface AgentBody {
  readonly kind: 'agent';
  /** Name of the agent's definition. */
  readonly agent: string;
  /** Position of the reference in its file. */
  readonly position?: Position | undefined;
  readonly prompt: Selector<string>;
  readonly output?: AgentOutput | undefined;
  readonly env: Selector<Readonly<Record<string, string>>>;
  readonly permissions?: StepPermissions | undefined;
  readonly maxTurns?: number | undefined;
  /** Number of times that the agent may fix failing checks before the attempt fails. */
  readonly rework: number;
  readonly work: WorkRules;
}

export interface AgentOutput {
  /** JSON Schema of the output, shown to the agent. */
  readonly schema: JsonObject;
  /** Validates the output. Throws OUTPUT_INVALID. */
  readonly parse: (output: unknown) => unknown;
}

/** Permissions in addition to those of the agent's definition. */
export interface StepPermissions {
  readonly preset?: 'read-only' | 'edit' | 'full' | undefined;
  readonly allow: readonly string[];
  readonly deny: readonly string[];
}

/** Lands the work of a step on a branch. */
export interface LandBody {
  readonly kind: 'land';
  readonly onto: Selector<string>;
  /** Step whose work lands. For a fan-out without `select`, the work of every copy lands in order. */
  readonly from: string;
  /** Command that must pass on the rebased work before the branch moves. */
  readonly verify?: Command | undefined;
}

/** Work that Reprise implements itself. It is referenced by name, so that another process can execute it too. */
export interface BuiltInBody {
  readonly kind: 'built-in';
  readonly name: string;
  /** Without it, the step works in the project's own folder. */
  readonly work?: WorkRules | undefined;
}

/** External values are never interpolated into the script. They are passed in `env`. */
export interface ShellCommand {
  readonly script: string;
  readonly shell: 'bash' | 'sh';
  readonly env: Readonly<Record<string, string>>;
  /** Path relative to the project's root. */
  readonly workingDirectory?: string | undefined;
}

export interface UsesBody {
  readonly kind: 'uses';
  readonly workflow: WorkflowModel;
  /** Input of the child workflow, not yet validated by the child's input contract. */
  readonly input: Selector<unknown>;
}

export interface ApproveBody {
  readonly kind: 'approve';
  readonly request: Selector<ApprovalRequest>;
}

/** Answering `reject` fails the step; any other choice completes it. */
export interface ApprovalRequest {
  readonly message: string;
  readonly choices: readonly string[];
}

export interface InputContract {
  /** Validates the input and fills in defaults. Throws INPUT_INVALID with every problem. */
  readonly parse: (raw: unknown) => Json;
  /** Fields for `--help`, the docs and the conversion of `--input key=value`. */
  readonly fields: readonly InputField[];
}

export interface InputField {
  readonly name: string;
  readonly type: 'string' | 'number' | 'boolean' | 'choice' | 'json';
  readonly required: boolean;
  readonly default?: Json | undefined;
  readonly description?: string | undefined;
  readonly options?: readonly string[] | undefined;
}

/** Second argument of a function step, after the outputs of its dependencies. */
export interface StepContext<Input = unknown> {
  readonly runId: string;
  /** Path of the step, such as `deploy/build`. */
  readonly step: string;
  readonly input: Input;
  /** Number of the attempt, counted from 1. */
  readonly attempt: number;
  /** Index of this copy of a fanned-out step, counted from 0. */
  readonly worker?: number | undefined;
  /** Matrix values of this copy, if the step fans out over a matrix. */
  readonly matrix?: JsonObject | undefined;
  /** Signal that aborts when the step is cancelled or times out. */
  readonly signal: AbortSignal;
  /** Sleeps durably: time also passes while no process runs. After a resume, the code before the sleep runs again. */
  sleep(duration: number | string): Promise<void>;
  /** Waits durably for `reprise signal <run> <name>`. A signal that arrives early is kept. */
  waitForSignal<T = Json>(name: string, options?: { readonly schema?: Parser<T> }): Promise<T>;
  log(message: string, fields?: JsonObject): void;
}

/** Any object with a `parse` method like zod's. */
export interface Parser<T> {
  parse(value: unknown): T;
}

/**
 * Returns a scope whose values belong to one reader. Code of a workflow may sort or extend what it gets, and neither
 * the run nor any other reader may notice.
 */
export const ownScope = (scope: Scope): Scope => new OwnScope(scope);

/** Copies the inputs when they are read, because they may be large and most steps read only outputs. */
class OwnScope implements Scope {
  readonly steps: Scope['steps'];
  readonly matrix: Scope['matrix'];
  readonly status: Scope['status'];
  readonly #shared: Json;
  #inputs: Json | undefined;

  constructor({ inputs, steps, matrix, status }: Scope) {
    this.#shared = inputs;
    this.steps = ownViews(steps);
    this.matrix = copyJson(matrix);
    this.status = status;
  }

  get inputs(): Json {
    this.#inputs ??= copyJson(this.#shared);
    return this.#inputs;
  }
}

/** The result has no prototype, so that a step may have any name. */
function ownViews(steps: Scope['steps']): Scope['steps'] {
  const views: Record<string, StepView> = Object.create(null);
  for (const id in steps) {
    const view = steps[id];
    if (view) views[id] = { ...view, outputs: copyJson(view.outputs) };
  }
  return views;
}
