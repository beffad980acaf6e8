import type { ErrorData, Position } from '../core/errors.ts';
import type { Json, JsonObject } from '../core/json.ts';

/**
 * What a workflow is once it has been read, whether from YAML or from TypeScript. The engine knows nothing else.
 * Selectors are pure functions of what a step may read, and are called once: history keeps what they said.
 */
export interface WorkflowModel {
  readonly name: string;
  readonly description?: string | undefined;
  /** Absolute path of the file that defines it. */
  readonly file?: string | undefined;
  readonly input: InputContract;
  /** In the order in which they were written. */
  readonly steps: readonly StepModel[];
  readonly onFailure: FailurePolicy;
  /** Overrides `runtime.max_concurrent_workers`. */
  readonly maxConcurrentWorkers?: number | undefined;
  /** Wall time that the run may take, over all resumes. */
  readonly budgetMs?: number | undefined;
  /** What the agents of the run may use up, children included. */
  readonly budget?: SpendingLimit | undefined;
  /** What the run gives back; without it, an object with the output of every sink. */
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
  /** Read and written ones together. */
  readonly tokens?: number | undefined;
}

export interface StepModel {
  /** Unique within its workflow; `[A-Za-z_][A-Za-z0-9_-]*`. */
  readonly id: string;
  readonly needs: readonly Need[];
  readonly condition?: Selector<boolean> | undefined;
  /** Its failure does not fail the run. */
  readonly optional: boolean;
  readonly retry?: RetryRule | undefined;
  readonly timeout: TimeoutRule;
  /** What its agents may use up, over all attempts and workers. */
  readonly budget?: SpendingLimit | undefined;
  /** It becomes many workers; everything else in here is said of each of them. */
  readonly fanOut?: FanOut | undefined;
  readonly body: Body;
  /** A hash of all that defines the step, so that a change is noticed when a run is resumed. */
  readonly fingerprint: string;
  /** Where it was written. */
  readonly position?: Position | undefined;
}

export interface Need {
  readonly id: string;
  /** The step runs however this dependency ended (`if: always()`, `maybe(handle)`); otherwise only if it succeeded. */
  readonly tolerant: boolean;
}

/** What a step may read: the run's input and its declared dependencies, and nothing else. */
export interface Scope {
  readonly inputs: Json;
  /** By step id; declared dependencies only. */
  readonly steps: Readonly<Record<string, StepView>>;
  /** The values of this worker, in a fan-out over a matrix. */
  readonly matrix?: JsonObject | undefined;
  /** How things stand for `success()`, `failure()` and `cancelled()`: over all that the step comes after. */
  readonly status: 'success' | 'failure' | 'cancelled';
}

export interface StepView {
  /** GitHub's words. `conclusion` is `success` for an optional step that failed. */
  readonly outcome: 'success' | 'failure' | 'cancelled' | 'skipped';
  readonly conclusion: 'success' | 'failure' | 'cancelled' | 'skipped';
  /** `undefined` unless it succeeded; a fan-out says in any case what its workers came to. */
  readonly outputs: Json | undefined;
  /** Absolute paths of the files that it hands on, by name. */
  readonly artifacts?: Readonly<Record<string, string>> | undefined;
  /** Where its work is, if it did it in a workspace; for a fan-out, that of the selected worker. */
  readonly branch?: string | undefined;
  /** The last commit of that work. */
  readonly commit?: string | undefined;
}

export type Selector<T> = (scope: Scope) => T;

export interface RetryRule {
  /** In all, the first one included. */
  readonly attempts: number;
  readonly backoff: { readonly initialMs: number; readonly factor: number; readonly maxMs: number };
  /** Which errors are tried again; all by default. */
  readonly retries?: ((error: ErrorData) => boolean) | undefined;
}

export interface TimeoutRule {
  /** For one attempt. Running over is an error like any other, and may be retried. */
  readonly attemptMs?: number | undefined;
  /** From the first start to the end, attempts and waits included. Never retried. */
  readonly stepMs?: number | undefined;
  /** How long an agent may be silent. Running over is an error like any other. */
  readonly stallMs?: number | undefined;
}

/** One step that runs many times at once. */
export interface FanOut {
  /** `concurrency`: identical copies. `matrix`: one for each item. */
  readonly kind: 'concurrency' | 'matrix';
  /** One for each worker, in order; empty ones for identical copies. */
  readonly items: Selector<readonly JsonObject[]>;
  /** At most so many at once, beside the limit of the run. */
  readonly maxParallel?: number | undefined;
  readonly onFailure: FailurePolicy;
  /** Picks the best of the workers that succeeded: then it is enough that one did. */
  readonly select?: SelectRule | undefined;
}

export interface SelectRule {
  /** Commands that must pass in the workspace of a candidate. */
  readonly gates: readonly Command[];
  /** Run in the workspace of each candidate that passed; the last line it prints is its score, and the highest wins. */
  readonly rank?: Command | undefined;
  readonly judge?: Judge | undefined;
}

/** An agent that is shown what the candidates did, and picks one. */
export interface Judge {
  readonly agent: string;
  /** What to look for. */
  readonly prompt?: Selector<string> | undefined;
  /** Where it is named. */
  readonly position?: Position | undefined;
}

export type Body = FunctionBody | RunBody | AgentBody | UsesBody | ApproveBody | LandBody | BuiltInBody;

/** A shell command beside the main work of a step. */
export interface Command {
  /** As it was written, for messages and permissions. */
  readonly text: string;
  readonly command: Selector<ShellCommand>;
}

/** What surrounds the work of a script or an agent. */
export interface WorkRules {
  readonly workspace: WorkspaceRule;
  /** Before the work, in the workspace. */
  readonly setup: readonly Command[];
  /** After it, however it ended. */
  readonly teardown: readonly Command[];
  /** Must pass before the work counts. */
  readonly checks: readonly Command[];
  readonly artifacts: readonly ArtifactRule[];
}

export interface ArtifactRule {
  readonly name: string;
  /** Relative to the workspace. */
  readonly path: string;
}

export type WorkspaceRule =
  /** The project's own folder. */
  | { readonly kind: 'none' }
  | {
      readonly kind: 'worktree';
      /** Nothing in it may change; it is not committed. */
      readonly readonly: boolean;
      readonly base: WorkspaceBase;
      /** The name of its branch, instead of one of the run's own. */
      readonly branch?: Selector<string> | undefined;
    };

/** Where a workspace begins: at the base of the run, where a needed step left off, or at a commit by name. */
export type WorkspaceBase =
  | { readonly kind: 'run' }
  | { readonly kind: 'step'; readonly id: string }
  | { readonly kind: 'ref'; readonly name: Selector<string> };

export interface FunctionBody {
  readonly kind: 'function';
  readonly run: (scope: Scope, ctx: StepContext) => unknown;
  /** Checks and may transform the output; throws. */
  readonly parseOutput?: ((output: unknown) => unknown) | undefined;
}

export interface RunBody {
  readonly kind: 'run';
  readonly command: Selector<ShellCommand>;
  readonly parseOutput?: ((output: unknown) => unknown) | undefined;
  /** Without them it works in the project's own folder. */
  readonly work?: WorkRules | undefined;
}

export interface AgentBody {
  readonly kind: 'agent';
  /** The name of its definition. */
  readonly agent: string;
  /** Where it is named. */
  readonly position?: Position | undefined;
  readonly prompt: Selector<string>;
  readonly output?: AgentOutput | undefined;
  readonly env: Selector<Readonly<Record<string, string>>>;
  readonly permissions?: StepPermissions | undefined;
  readonly maxTurns?: number | undefined;
  /** How often the agent is told what its checks said, to mend it, before the attempt fails. */
  readonly rework: number;
  readonly work: WorkRules;
}

export interface AgentOutput {
  /** JSON Schema: shown to the agent. */
  readonly schema: JsonObject;
  /** Throws OUTPUT_INVALID. */
  readonly parse: (output: unknown) => unknown;
}

/** Beside what the definition of the agent says. */
export interface StepPermissions {
  readonly preset?: 'read-only' | 'edit' | 'full' | undefined;
  readonly allow: readonly string[];
  readonly deny: readonly string[];
}

/** Brings the work of a step onto a branch. */
export interface LandBody {
  readonly kind: 'land';
  readonly onto: Selector<string>;
  /** The needed step whose work it is; all workers of a fan-out without a selection, in order. */
  readonly from: string;
  /** Must pass on the result before anything moves. */
  readonly verify?: Command | undefined;
}

/** Work that the program brings along, by name: data, so that another process can do it too. */
export interface BuiltInBody {
  readonly kind: 'built-in';
  readonly name: string;
  /** Without them it works in the project's own folder. */
  readonly work?: WorkRules | undefined;
}

/** Values from outside never stand in the script: they travel in `env`. */
export interface ShellCommand {
  readonly script: string;
  readonly shell: 'bash' | 'sh';
  readonly env: Readonly<Record<string, string>>;
  /** Relative to the project's root. */
  readonly workingDirectory?: string | undefined;
}

export interface UsesBody {
  readonly kind: 'uses';
  readonly workflow: WorkflowModel;
  /** The child's input before the child's own contract has checked it. */
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
  /** Checks, fills in defaults; throws INPUT_INVALID with every problem. */
  readonly parse: (raw: unknown) => Json;
  /** For `--help`, the docs and the conversion of `--input key=value`. */
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

/** What a function step is given beside the outputs of its dependencies. */
export interface StepContext<Input = unknown> {
  readonly runId: string;
  /** Path of the step, such as `deploy/build`. */
  readonly step: string;
  readonly input: Input;
  /** From 1. */
  readonly attempt: number;
  /** From 0: which copy of a fanned-out step this is. */
  readonly worker?: number | undefined;
  /** The item of this copy, in a fan-out over a matrix. */
  readonly matrix?: JsonObject | undefined;
  /** Aborted when the step is cancelled or times out. */
  readonly signal: AbortSignal;
  /** A durable sleep: it goes on counting while no process runs. The code before it runs again after a resume. */
  sleep(duration: number | string): Promise<void>;
  /** Waits durably for `reprise signal <run> <name>`; a signal that came early is kept. */
  waitForSignal<T = Json>(name: string, options?: { readonly schema?: Parser<T> }): Promise<T>;
  log(message: string, fields?: JsonObject): void;
}

/** Anything with a zod-like `parse`. */
export interface Parser<T> {
  parse(value: unknown): T;
}
