import type { Json } from '../core/json.ts';
import type { Scope } from '../workflow/model.ts';
import type { Task } from './task.ts';
import type { Seen } from './wake.ts';

/** What the first step of an iteration gives to the others. */
export type Dispatch =
  | {
      readonly task: DispatchedTask;
      readonly agent: string;
      readonly args: Readonly<Record<string, string>>;
      /** For people. */
      readonly why: string;
      /** Of the claim. */
      readonly token: number;
    }
  | { readonly task: null; readonly why: string; readonly seen: Seen };

export type DispatchedTask = Pick<Task, 'id' | 'title' | 'body' | 'file' | 'version'>;

/** What an iteration is started with. */
export interface IterationInput {
  /** The name of the worker. */
  readonly worker: string;
  readonly incarnation: string;
}

export const inputOf = ({ inputs }: Scope): IterationInput => inputs as unknown as IterationInput;

export const dispatchOf = ({ steps }: Scope): Dispatch | undefined =>
  steps['dispatch']?.outputs as unknown as Dispatch | undefined;

/** Of an iteration that has a task. */
export function dispatchedOf(scope: Scope): Extract<Dispatch, { agent: string }> {
  const dispatch = dispatchOf(scope);
  if (dispatch && dispatch.task !== null) return dispatch;
  throw new TypeError('nothing was dispatched');
}

export const toOutput = (dispatch: Dispatch): Json => JSON.parse(JSON.stringify(dispatch)) as Json;
