import { RepriseError } from '../../core/errors.ts';
import { type Json, type JsonObject, toJson } from '../../core/json.ts';
import { type Duration, parseDuration } from '../../core/time.ts';
import type { FunctionBody, Parser, Scope, StepContext } from '../../workflow/model.ts';
import type { Wait } from '../state/step-state.ts';
import { type StepEnd, thrownError } from './messages.ts';

/** What a function asks its host for, by the number of the call. */
export type Question =
  | { readonly wait: number; readonly on: 'timer'; readonly ms: number }
  | { readonly wait: number; readonly on: 'signal'; readonly signal: string };

export type Turn =
  | { readonly kind: 'asked'; readonly questions: readonly Question[] }
  | { readonly kind: 'ended'; readonly end: StepEnd };

export interface FunctionCallOptions {
  readonly body: FunctionBody;
  readonly scope: Scope;
  readonly runId: string;
  readonly step: string;
  readonly worker: number | undefined;
  readonly attempt: number;
  /** The waits that history knows of, with their answers as far as they have come. */
  readonly known: ReadonlyMap<number, Wait> | undefined;
  readonly log: (message: string, fields: JsonObject | undefined) => void;
  /** Waits for the end of the event-loop turn, so that questions asked together are handed on together. */
  readonly endOfTurn: () => Promise<void>;
}

/**
 * A function step under way: it runs until it ends or asks for something durable, and goes on when it is answered.
 * Calls of `ctx` are numbered; a number that history knows is answered from there.
 */
export class FunctionCall {
  readonly #options: FunctionCallOptions;
  /** Made when it is first asked for: most functions never look. */
  #abort: AbortController | undefined;
  #cancelled: { readonly reason: unknown } | undefined;
  readonly #pending = new Map<number, Handles<Json>>();
  #asked: Question[] = [];
  #calls = 0;
  #started = false;
  #end: StepEnd | undefined;
  /** Whoever waits for the function to ask or to end. */
  #host: Handles<Turn | Promise<Turn>> | undefined;

  constructor(options: FunctionCallOptions) {
    this.#options = options;
  }

  /** Runs until the next question or the end, which a synchronous function reaches at once. */
  next(): Turn | Promise<Turn> {
    if (!this.#started) this.#start();
    if (this.#asked.length > 0) return this.#handOverQuestions();
    if (this.#end) return { kind: 'ended', end: this.#end };
    return new Promise((resolve, reject) => {
      this.#host = { resolve, reject };
    });
  }

  answer(wait: number, value: Json): void {
    this.#pending.get(wait)?.resolve(value);
    this.#pending.delete(wait);
  }

  /** Aborts `ctx.signal`, and ends every wait; a function that heeds either comes to its end. */
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
    const { body, scope } = this.#options;
    const failed = (thrown: unknown) => this.#finish({ kind: 'failed', error: thrownError(thrown) });
    try {
      const returned = body.run(scope, this.#context());
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
    this.#finish({ kind: 'completed', output: toJson(parseOutput ? parseOutput(returned) : returned) });
  }

  #finish(end: StepEnd): void {
    this.#end = end;
    this.#tellHost({ kind: 'ended', end });
  }

  #tellHost(turn: Turn | Promise<Turn>): void {
    this.#host?.resolve(turn);
    this.#host = undefined;
  }

  async #handOverQuestions(): Promise<Turn> {
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

  #context(): StepContext {
    const signal = () => this.#signal;
    const { runId, step, worker, attempt, scope, log } = this.#options;
    return {
      runId,
      step,
      worker,
      matrix: scope.matrix,
      attempt,
      input: scope.inputs,
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
        `ctx.sleep(${JSON.stringify(duration)}) is not a duration`,
        { hint: 'milliseconds, or a text such as 30s or 1h30m' },
      );
    await this.#wait(wait => ({ wait, on: 'timer', ms }));
  }

  async #waitForSignal<T>(signal: string, schema: Parser<T> | undefined): Promise<T> {
    const payload = await this.#wait(wait => ({ wait, on: 'signal', signal }));
    return (schema ? schema.parse(payload) : payload) as T;
  }

  #wait(ask: (wait: number) => Question): Promise<Json> {
    const question = ask(this.#calls++);
    const known = this.#options.known?.get(question.wait);
    if (this.#cancelled) return Promise.reject(this.#cancelled.reason);
    if (known && !asksTheSame(known, question)) return Promise.reject(changed(question, known));
    if (known?.answer) return Promise.resolve(known.answer.value);
    if (!known) {
      this.#asked.push(question);
      if (this.#host) this.#tellHost(this.#handOverQuestions());
    }
    return new Promise((resolve, reject) => this.#pending.set(question.wait, { resolve, reject }));
  }
}

/** A function may leave a wait unawaited: cancelling it must not bring the process down as an unhandled rejection. */
function quiet<T>(wait: Promise<T>): Promise<T> {
  wait.catch(() => {});
  return wait;
}

interface Handles<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

const isThenable = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';

const asksTheSame = (known: Wait, question: Question): boolean =>
  known.on === question.on && (question.on === 'timer' || known.signal === question.signal);

function changed(question: Question, known: Wait): RepriseError {
  const describe = (on: string, signal: string | undefined) =>
    on === 'timer' ? 'sleep()' : `waitForSignal(${JSON.stringify(signal)})`;
  const now = describe(question.on, question.on === 'signal' ? question.signal : undefined);
  return new RepriseError(
    'WAIT_CHANGED',
    `call ${question.wait + 1} of ctx is ${now} now, but was ${describe(known.on, known.signal)} before`,
    {
      hint: 'the calls of ctx must come in the same order each time the function runs',
    },
  );
}
