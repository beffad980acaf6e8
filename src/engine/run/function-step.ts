import {
  copyJson,
  type Duration,
  type Json,
  type JsonObject,
  parseDuration,
  RepriseError,
  toJson,
} from '../../core/index.ts';
import {
  type FunctionBody,
  ownScope,
  type Parser,
  type Scope,
  type StepContext,
} from '../../workflow/index.ts';
import type { StepWait } from '../state/step-state.ts';
import { type StepEnd, thrownError } from './messages.ts';

/** A durable request of a function, identified by the number of its `ctx` call. */
export type FunctionQuestion =
  | { readonly wait: number; readonly on: 'timer'; readonly ms: number }
  | { readonly wait: number; readonly on: 'signal'; readonly signal: string };

export type FunctionTurn =
  | { readonly kind: 'asked'; readonly questions: readonly FunctionQuestion[] }
  | { readonly kind: 'ended'; readonly end: StepEnd };

export interface FunctionCallOptions {
  readonly body: FunctionBody;
  readonly scope: Scope;
  readonly runId: string;
  readonly step: string;
  readonly worker: number | undefined;
  readonly attempt: number;
  /** Waits that history knows, with the answers received so far. */
  readonly known: ReadonlyMap<number, StepWait> | undefined;
  readonly log: (message: string, fields: JsonObject | undefined) => void;
  /** Waits for the end of the event-loop turn, so that questions asked together are reported together. */
  readonly endOfTurn: () => Promise<void>;
}

/**
 * A running function step. It runs until it ends or asks for something durable, and continues when it is answered.
 * Calls to `ctx` are numbered, and the history answers the calls whose numbers it contains.
 */
export class FunctionCall {
  readonly #options: FunctionCallOptions;
  /** Created on first use: most functions never read `ctx.signal`. */
  #abort: AbortController | undefined;
  #cancelled: { readonly reason: unknown } | undefined;
  readonly #pending = new Map<number, PromiseHandles<Json>>();
  #asked: FunctionQuestion[] = [];
  #calls = 0;
  #started = false;
  #end: StepEnd | undefined;
  /** Caller that waits for the next question or the end. */
  #host: PromiseHandles<FunctionTurn | Promise<FunctionTurn>> | undefined;

  constructor(options: FunctionCallOptions) {
    this.#options = options;
  }

  /** Runs until the next question or the end. A synchronous function ends before this returns. */
  next(): FunctionTurn | Promise<FunctionTurn> {
    if (!this.#started) this.#start();
    if (this.#asked.length > 0) return this.#handOverQuestions();
    if (this.#end) return { kind: 'ended', end: this.#end };
    return new Promise((resolve, reject) => {
      this.#host = { resolve, reject };
    });
  }

  answer(wait: number, value: Json): void {
    this.#pending.get(wait)?.resolve(copyJson(value));
    this.#pending.delete(wait);
  }

  /** Aborts `ctx.signal` and rejects every pending wait. */
  cancel(reason: unknown): void {
    this.#cancelled = { reason };
    this.#abort?.abort(reason);
    for (const { reject } of this.#pending.values()) reject(reason);
    this.#pending.clear();
  }

  /** Stops waiting for a function that ignores its cancellation. */
  abandon(reason: unknown): void {
    this.#host?.reject(reason);
    this.#host = undefined;
  }

  #start(): void {
    this.#started = true;
    const { body } = this.#options;
    const scope = ownScope(this.#options.scope);
    const failed = (thrown: unknown) => this.#finish({ kind: 'failed', error: thrownError(thrown) });
    try {
      const returned = runStepFunction(body, scope, this.#context(scope));
      if (isThenable(returned))
        Promise.resolve(returned)
          .then(value => this.#complete(value))
          .catch(failed);
      else this.#complete(returned);
    } catch (thrown) {
      failed(thrown);
    }
  }

  #complete(returned: unknown): void {
    const { parseOutput } = this.#options.body;
    this.#finish({
      kind: 'completed',
      output: toJson(parseOutput ? parseStepValue(parseOutput, returned) : returned),
    });
  }

  #finish(end: StepEnd): void {
    this.#end = end;
    this.#notifyHost({ kind: 'ended', end });
  }

  #notifyHost(turn: FunctionTurn | Promise<FunctionTurn>): void {
    this.#host?.resolve(turn);
    this.#host = undefined;
  }

  async #handOverQuestions(): Promise<FunctionTurn> {
    await this.#options.endOfTurn();
    const questions = this.#asked;
    this.#asked = [];
    return { kind: 'asked', questions };
  }

  get #signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#cancelled) this.#abort.abort(this.#cancelled.reason);
    return this.#abort.signal;
  }

  #context(scope: Scope): StepContext {
    const signal = () => this.#signal;
    const { runId, step, worker, attempt, log } = this.#options;
    return {
      runId,
      step,
      worker,
      matrix: scope.matrix,
      attempt,
      get input() {
        return scope.inputs;
      },
      get signal() {
        return signal();
      },
      sleep: duration => quiet(this.#sleep(duration)),
      waitForSignal: (signal, options) => quiet(this.#waitForSignal(signal, options?.schema)),
      log: (message, fields) => log(message, fields),
    };
  }

  async #sleep(duration: Duration): Promise<void> {
    const ms = parseDuration(duration);
    if (ms === undefined)
      throw new RepriseError(
        'EXPRESSION_FAILED',
        `ctx.sleep() was called with ${JSON.stringify(duration)}, which is not a duration`,
        { hint: 'pass milliseconds, or a string such as 30s or 1h30m' },
      );
    await this.#wait({ wait: this.#calls++, on: 'timer', ms });
  }

  /** A malformed payload is the mistake of its sender, so it must not end the step: the same call waits again. */
  async #waitForSignal<T>(signal: string, schema: Parser<T> | undefined): Promise<T> {
    const wait = this.#calls++;
    let payload = await this.#wait({ wait, on: 'signal', signal });
    for (;;) {
      try {
        return (schema ? parseStepValue(schema.parse.bind(schema), payload) : payload) as T;
      } catch (thrown) {
        const { message } = thrownError(thrown);
        this.#options.log(
          `refused signal ${JSON.stringify(signal)} and keeps waiting for it: ${message}`,
          undefined,
        );
        payload = await this.#ask({ wait, on: 'signal', signal });
      }
    }
  }

  #wait(question: FunctionQuestion): Promise<Json> {
    const known = this.#options.known?.get(question.wait);
    if (!known) return this.#ask(question);
    if (this.#cancelled) return Promise.reject(this.#cancelled.reason);
    if (!asksTheSame(known, question)) return Promise.reject(changed(question, known));
    if (known.answer) return Promise.resolve(copyJson(known.answer.value));
    return this.#answerTo(question);
  }

  #ask(question: FunctionQuestion): Promise<Json> {
    if (this.#cancelled) return Promise.reject(this.#cancelled.reason);
    this.#asked.push(question);
    if (this.#host) this.#notifyHost(this.#handOverQuestions());
    return this.#answerTo(question);
  }

  #answerTo({ wait }: FunctionQuestion): Promise<Json> {
    return new Promise((resolve, reject) => this.#pending.set(wait, { resolve, reject }));
  }
}

/** Only this function and the next call the code of a step: a stack is cut at their names. */
const runStepFunction = (body: FunctionBody, scope: Scope, context: StepContext): unknown =>
  body.run(scope, context);

const parseStepValue = <T>(parse: (value: unknown) => T, value: unknown): T => parse(value);

/**
 * Prevents an unhandled rejection: a function may leave a wait unawaited, and cancelling it must not end the process.
 */
function quiet<T>(wait: Promise<T>): Promise<T> {
  wait.catch(() => {});
  return wait;
}

interface PromiseHandles<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

const isThenable = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';

const asksTheSame = (known: StepWait, question: FunctionQuestion): boolean =>
  known.on === question.on && (question.on === 'timer' || known.signal === question.signal);

function changed(question: FunctionQuestion, known: StepWait): RepriseError {
  const describe = (on: string, signal: string | undefined) =>
    on === 'timer' ? 'sleep()' : `waitForSignal(${JSON.stringify(signal)})`;
  const now = describe(question.on, question.on === 'signal' ? question.signal : undefined);
  return new RepriseError(
    'WAIT_CHANGED',
    `call ${question.wait + 1} of ctx is now ${now}, but was ${describe(known.on, known.signal)} when it was recorded`,
    {
      hint: 'a function must call ctx in the same order every time it runs',
    },
  );
}
