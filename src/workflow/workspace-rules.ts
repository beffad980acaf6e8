import { nearest } from '../core/index.ts';
import { topologicalOrder } from './graph.ts';
import type { Body, StepModel, WorkRules, WorkspaceBase } from './model.ts';

/** Resolved workspace of a step. */
interface Placement {
  readonly work: 'none' | 'readonly' | 'worktree';
  readonly fanOut: 'none' | 'selected' | 'all';
  /** Step whose work this one builds on. */
  readonly continues: string | undefined;
}

/** Earlier steps whose work a following step can build on. */
interface WorkReach {
  readonly found: ReadonlySet<string>;
  /** Fan-outs on the way that produced several branches, none of them selected. */
  readonly passed: ReadonlySet<string>;
}

const nothing: WorkReach = { found: new Set(), passed: new Set() };

/** Combines the reach of the needed steps. */
function reachOf(needs: readonly (WorkReach | undefined)[]): WorkReach {
  const [first = nothing, ...others] = needs.filter(reach => reach !== undefined);
  // Long chains and wide graphs without any work share one object.
  if (others.every(reach => reach === first)) return first;
  return {
    found: new Set([...first.found, ...others.flatMap(({ found }) => [...found])]),
    passed: new Set([...first.passed, ...others.flatMap(({ passed }) => [...passed])]),
  };
}

/** Returns the reach after a step, given the reach before it. */
function throughStep(id: string, placed: Placement, before: WorkReach): WorkReach {
  if (canContinueFrom(placed)) return { found: new Set([id]), passed: nothing.passed };
  if (placed.work !== 'worktree') return before;
  return { found: before.found, passed: new Set([...before.passed, id]) };
}

/** True if the step leaves exactly one writable workspace. */
const canContinueFrom = (placed: Placement | undefined): boolean =>
  placed?.work === 'worktree' && placed.fanOut !== 'all';

/** Returns the step whose work contains all other reachable work, or `undefined` if there is none. */
function singleOf({ found }: WorkReach, placed: ReadonlyMap<string, Placement>): string | undefined {
  if (found.size <= 1) return [...found][0];
  const contained = new Set<string>();
  for (const id of found) {
    for (let inner = placed.get(id)?.continues; inner !== undefined; inner = placed.get(inner)?.continues) {
      if (contained.has(inner)) break;
      contained.add(inner);
    }
  }
  const outermost = [...found].filter(id => !contained.has(id));
  return outermost.length === 1 ? outermost[0] : undefined;
}

/** The part of a step's definition that says where it works. The steps before it determine the rest. */
export type WorkPlace =
  | {
      readonly kind: 'workspace';
      /** `inherited`: a worktree if there is exactly one earlier workspace to build on, or else the project's folder. */
      readonly mode: 'worktree' | 'readonly' | 'none' | 'inherited';
      /** Id of a step, or else the name of a commit. `undefined` if it is computed or not set. */
      readonly base?: string | undefined;
      readonly hasComputedBase?: boolean | undefined;
    }
  | { readonly kind: 'land'; readonly from?: string | undefined };

export interface StepDraft {
  readonly model: StepModel;
  readonly place?: WorkPlace | undefined;
}

export interface PlaceProblem {
  /** Position of the step in the list. */
  readonly index: number;
  readonly key: 'base' | 'from' | 'land';
  readonly message: string;
  readonly hint?: string | undefined;
}

interface PlacedWork {
  /** Bodies of the steps, in order. A body is unchanged if nothing had to be resolved. */
  readonly bodies: readonly Body[];
  readonly problems: readonly PlaceProblem[];
}

/**
 * Resolves the base of every workspace and the source of every `land`.
 *
 * Without a `base`, a workspace starts from the nearest earlier workspace that the step depends on, if there is exactly
 * one, and otherwise from the base of the run. A script without its own settings builds on that workspace too.
 */
export function placeWork(drafts: readonly StepDraft[]): PlacedWork {
  const bodies = drafts.map(({ model }) => model.body);
  if (!drafts.some(({ place }) => isWork(place))) return { bodies, problems: [] };
  const sorted = topologicalOrder(drafts.map(({ model: { id, needs } }, index) => ({ id, needs, index })));
  // The check of the graph reports the cycle.
  if (sorted.kind === 'cycle') return { bodies, problems: [] };
  const placer = new WorkPlacer(drafts);
  for (const { index } of sorted.order) {
    const draft = drafts[index];
    if (draft) bodies[index] = placer.place(draft, index);
  }
  return { bodies, problems: placer.problems };
}

/** True if a step creates or lands work, so that there is something to resolve. */
export const isWork = (place: WorkPlace | undefined): boolean =>
  place?.kind === 'land' || (place !== undefined && (place.mode === 'worktree' || place.mode === 'readonly'));

/** Places steps one by one. Expects them in topological order. */
class WorkPlacer {
  readonly problems: PlaceProblem[] = [];
  readonly #drafts: readonly StepDraft[];
  readonly #byId: ReadonlyMap<string, StepDraft>;
  readonly #placed = new Map<string, Placement>();
  readonly #reaches = new Map<string, WorkReach>();

  constructor(drafts: readonly StepDraft[]) {
    this.#drafts = drafts;
    this.#byId = new Map(drafts.map(draft => [draft.model.id, draft]));
  }

  place({ model, place }: StepDraft, index: number): Body {
    const reach = reachOf(model.needs.map(({ id }) => this.#reaches.get(id)));
    const { body, base } =
      place?.kind === 'land'
        ? { body: this.#landing(model, { place, index, reach }), base: undefined }
        : this.#workspace(model, { place, index, reach });
    const placed: Placement = {
      work: workOf(body),
      fanOut: model.fanOut === undefined ? 'none' : model.fanOut.select ? 'selected' : 'all',
      continues: base?.kind === 'step' ? base.id : undefined,
    };
    this.#placed.set(model.id, placed);
    this.#reaches.set(model.id, throughStep(model.id, placed, reach));
    return body;
  }

  #workspace(
    model: StepModel,
    { place, index, reach }: PlacementRequest<Exclude<WorkPlace, { kind: 'land' }> | undefined>,
  ) {
    const { body } = model;
    if (!place || (body.kind !== 'run' && body.kind !== 'agent')) return { body };
    if (place.mode === 'none' || place.hasComputedBase) return { body };
    const single = singleOf(reach, this.#placed);
    if (place.mode === 'inherited') {
      if (single === undefined || body.kind !== 'run') return { body };
      const base: WorkspaceBase = { kind: 'step', id: single };
      return { base, body: { ...body, work: plainWork(base) } };
    }
    const inherited: WorkspaceBase = single === undefined ? { kind: 'run' } : { kind: 'step', id: single };
    const base =
      place.base === undefined ? inherited : this.#writtenBase(model, { place: place.base, index, reach });
    return { base, body: withBase(body, base) };
  }

  #writtenBase(model: StepModel, { place: written, index }: PlacementRequest<string>): WorkspaceBase {
    const known = this.#byId.has(written);
    if (!known) return { kind: 'ref', name: () => written };
    if (!this.#comesAfter(model, written)) {
      this.#problem(index, 'base', {
        message: `step \`${model.id}\` cannot start from the work of step \`${written}\` without depending on it`,
        hint: `make it depend on \`${written}\`; if you mean a branch, write \`refs/heads/${written}\``,
      });
    } else if (!canContinueFrom(this.#placed.get(written))) {
      this.#problem(index, 'base', { message: `step \`${written}\` ${this.#whyNoWork(written)}` });
    }
    return { kind: 'step', id: written };
  }

  #landing(
    model: StepModel,
    { place, index, reach }: PlacementRequest<Extract<WorkPlace, { kind: 'land' }>>,
  ): Body {
    if (model.body.kind !== 'land') return model.body;
    const from = place.from ?? this.#onlyWork(index, reach);
    if (place.from !== undefined) this.#checkFrom(model, { place: place.from, index, reach });
    return from === undefined ? model.body : { ...model.body, from };
  }

  #checkFrom(model: StepModel, { place: from, index }: PlacementRequest<string>): void {
    if (!this.#byId.has(from)) {
      const guess = nearest(from, this.#byId.keys());
      const hint = guess && `did you mean \`${guess}\`?`;
      this.#problem(index, 'from', { message: `unknown step \`${from}\``, hint });
    } else if (!this.#comesAfter(model, from)) {
      const message = `step \`${model.id}\` cannot land the work of step \`${from}\` without depending on it`;
      this.#problem(index, 'from', { message, hint: `make it depend on \`${from}\`` });
    } else if (this.#placed.get(from)?.work !== 'worktree') {
      this.#problem(index, 'from', { message: `step \`${from}\` ${this.#whyNoWork(from)}` });
    }
  }

  #onlyWork(index: number, reach: WorkReach): string | undefined {
    const single = singleOf(reach, this.#placed);
    if (single !== undefined && reach.passed.size === 0) return single;
    const choices = this.#drafts
      .map(({ model }) => model.id)
      .filter(id => reach.found.has(id) || reach.passed.has(id));
    this.#problem(
      index,
      'land',
      choices.length === 0
        ? {
            message: 'no earlier step leaves work to land',
            hint: 'make it depend on a step that works in a workspace',
          }
        : {
            message: `the step must name the work to land: ${choices.map(id => `\`${id}\``).join(' or ')}`,
            hint: `add \`from: ${choices[0]}\``,
          },
    );
    return undefined;
  }

  #whyNoWork(id: string): string {
    const placed = this.#placed.get(id);
    if (placed?.work === 'readonly') return 'leaves no work, because its workspace is read-only';
    if (placed?.work === 'worktree')
      return 'fans out without `select`, so each of its copies leaves work of its own';
    return 'leaves no work, because it has no workspace of its own';
  }

  #comesAfter({ needs }: StepModel, id: string): boolean {
    const seen = new Set(needs.map(need => need.id));
    for (const next of seen) {
      if (next === id) return true;
      for (const need of this.#byId.get(next)?.model.needs ?? []) seen.add(need.id);
    }
    return false;
  }

  #problem(index: number, key: PlaceProblem['key'], problem: Pick<PlaceProblem, 'message' | 'hint'>): void {
    this.problems.push({ index, key, ...problem });
  }
}

interface PlacementRequest<Place> {
  readonly place: Place;
  readonly index: number;
  readonly reach: WorkReach;
}

const plainWork = (base: WorkspaceBase): WorkRules => ({
  workspace: { kind: 'worktree', readonly: false, base },
  setup: [],
  teardown: [],
  checks: [],
  artifacts: [],
});

function withBase(body: Extract<Body, { kind: 'run' | 'agent' }>, base: WorkspaceBase): Body {
  if (body.work?.workspace.kind !== 'worktree') return body;
  return { ...body, work: { ...body.work, workspace: { ...body.work.workspace, base } } };
}

function workOf(body: Body): Placement['work'] {
  const workspace = body.kind === 'run' || body.kind === 'agent' ? body.work?.workspace : undefined;
  if (workspace?.kind !== 'worktree') return 'none';
  return workspace.readonly ? 'readonly' : 'worktree';
}
