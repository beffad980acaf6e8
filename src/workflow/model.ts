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
  /** What the run gives back; without it, an object with the output of every sink. */
  readonly output?: Selector<Json> | undefined;
}

export type FailurePolicy = 'fail-fast' | 'finish-running' | 'continue';
export const failurePolicies = [
  'fail-fast',
  'finish-running',
  'continue',
] as const satisfies readonly FailurePolicy[];

export interface StepModel {
  /** Unique within its workflow; `[A-Za-z_][A-Za-z0-9_-]*`. */
  readonly id: string;
  readonly needs: readonly Need[];
  readonly condition?: Selector<boolean> | undefined;
  /** Its failure does not fail the run. */
  readonly optional: boolean;
  readonly retry?: RetryRule | undefined;
  readonly timeout: TimeoutRule;
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
  /** How things stand for `success()`, `failure()` and `cancelled()`: over all that the step comes after. */
  readonly status: 'success' | 'failure' | 'cancelled';
}

export interface StepView {
  /** GitHub's words. `conclusion` is `success` for an optional step that failed. */
  readonly outcome: 'success' | 'failure' | 'cancelled' | 'skipped';
  readonly conclusion: 'success' | 'failure' | 'cancelled' | 'skipped';
  /** `undefined` unless it succeeded. */
  readonly outputs: Json | undefined;
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
}

export type Body = FunctionBody | RunBody | UsesBody | ApproveBody;

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
