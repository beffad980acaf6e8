import { copyJson, type Json } from '../core/index.ts';
import type { Scope, StepView } from './model.ts';

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
