import { nearest } from '../core/suggest.ts';
import { topologicalOrder } from './graph.ts';
import type { Body, StepModel, WorkRules, WorkspaceBase } from './model.ts';

/** Where a step works, once that is known. */
interface Placed {
  readonly work: 'none' | 'readonly' | 'worktree';
  readonly fanOut: 'none' | 'selected' | 'all';
  /** The step whose work it goes on with. */
  readonly continues: string | undefined;
}

/** The work that can be gone on with, seen from after a step. */
interface Reach {
  readonly found: ReadonlySet<string>;
  /** Fan-outs that left several works, which lie on the way. */
  readonly passed: ReadonlySet<string>;
}

const nothing: Reach = { found: new Set(), passed: new Set() };

/** What can be seen from a step that comes after these. */
function reachOf(needs: readonly (Reach | undefined)[]): Reach {
  const [first = nothing, ...others] = needs.filter(reach => reach !== undefined);
  // Long chains and wide graphs without any work share one object.
  if (others.every(reach => reach === first)) return first;
  return {
    found: new Set([...first.found, ...others.flatMap(({ found }) => [...found])]),
    passed: new Set([...first.passed, ...others.flatMap(({ passed }) => [...passed])]),
  };
}

/** What can be seen from after a step, which itself sees `before`. */
function throughStep(id: string, placed: Placed, before: Reach): Reach {
  if (canContinueFrom(placed)) return { found: new Set([id]), passed: nothing.passed };
  if (placed.work !== 'worktree') return before;
  return { found: before.found, passed: new Set([...before.passed, id]) };
}

/** A single work is left, in which something may have changed. */
const canContinueFrom = (placed: Placed | undefined): boolean =>
  placed?.work === 'worktree' && placed.fanOut !== 'all';

/** The one work that holds all others that were found; `undefined` if there is none. */
function singleOf({ found }: Reach, placed: ReadonlyMap<string, Placed>): string | undefined {
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

/** What a step says about where it works; the steps before it say the rest. */
export type WorkPlace =
  | {
      readonly kind: 'workspace';
      /** `inherited`: in a worktree if there is exactly one work to go on with, or else in the project's folder. */
      readonly mode: 'worktree' | 'readonly' | 'none' | 'inherited';
      /** The id of a step, or else the name of a commit. Nothing if it is computed, or was not written. */
      readonly base?: string | undefined;
      readonly hasComputedBase?: boolean | undefined;
    }
  | { readonly kind: 'land'; readonly from?: string | undefined };

export interface Draft {
  readonly model: StepModel;
  readonly place?: WorkPlace | undefined;
}

export interface PlaceProblem {
  /** The step's place in the list. */
  readonly index: number;
  readonly key: 'base' | 'from' | 'land';
  readonly message: string;
  readonly hint?: string | undefined;
}

interface PlacedWork {
  /** The bodies of the steps, in their order; the same ones where nothing was to be decided. */
  readonly bodies: readonly Body[];
  readonly problems: readonly PlaceProblem[];
}

/**
 * Decides where every workspace begins, and what every `land` lands.
 *
 * Without a `base`, a workspace goes on from the work of the nearest steps that it comes after: if that is exactly one,
 * from there, and otherwise from the base of the run. A script that says nothing works on that one work too.
 */
export function placeWork(drafts: readonly Draft[]): PlacedWork {
  const bodies = drafts.map(({ model }) => model.body);
  if (!drafts.some(({ place }) => isWork(place))) return { bodies, problems: [] };
  const sorted = topologicalOrder(drafts.map(({ model: { id, needs } }, index) => ({ id, needs, index })));
  // A circle is reported by whoever looks at the graph.
  if (sorted.kind === 'cycle') return { bodies, problems: [] };
  const placer = new Placer(drafts);
  for (const { index } of sorted.order) {
    const draft = drafts[index];
    if (draft) bodies[index] = placer.place(draft, index);
  }
  return { bodies, problems: placer.problems };
}

/** Whether a step takes part in handing on work, so that there is something to decide. */
export const isWork = (place: WorkPlace | undefined): boolean =>
  place?.kind === 'land' || (place !== undefined && (place.mode === 'worktree' || place.mode === 'readonly'));

/** Sees the steps in an order in which they can run. */
class Placer {
  readonly problems: PlaceProblem[] = [];
  readonly #drafts: readonly Draft[];
  readonly #byId: ReadonlyMap<string, Draft>;
  readonly #placed = new Map<string, Placed>();
  readonly #reaches = new Map<string, Reach>();

  constructor(drafts: readonly Draft[]) {
    this.#drafts = drafts;
    this.#byId = new Map(drafts.map(draft => [draft.model.id, draft]));
  }

  place({ model, place }: Draft, index: number): Body {
    const reach = reachOf(model.needs.map(({ id }) => this.#reaches.get(id)));
    const { body, base } =
      place?.kind === 'land'
        ? { body: this.#landing(model, { place, index, reach }), base: undefined }
        : this.#workspace(model, { place, index, reach });
    const placed: Placed = {
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
    { place, index, reach }: Asked<Exclude<WorkPlace, { kind: 'land' }> | undefined>,
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

  #writtenBase(model: StepModel, { place: written, index }: Asked<string>): WorkspaceBase {
    const known = this.#byId.has(written);
    if (!known) return { kind: 'ref', name: () => written };
    if (!this.#comesAfter(model, written)) {
      this.#problem(index, 'base', {
        message: `step \`${model.id}\` does not come after step \`${written}\`, so it cannot begin where that left off`,
        hint: `let it come after \`${written}\`; a branch of that name is written \`refs/heads/${written}\``,
      });
    } else if (!canContinueFrom(this.#placed.get(written))) {
      this.#problem(index, 'base', { message: `step \`${written}\` ${this.#whyNoWork(written)}` });
    }
    return { kind: 'step', id: written };
  }

  #landing(model: StepModel, { place, index, reach }: Asked<Extract<WorkPlace, { kind: 'land' }>>): Body {
    if (model.body.kind !== 'land') return model.body;
    const from = place.from ?? this.#onlyWork(index, reach);
    if (place.from !== undefined) this.#checkFrom(model, { place: place.from, index, reach });
    return from === undefined ? model.body : { ...model.body, from };
  }

  #checkFrom(model: StepModel, { place: from, index }: Asked<string>): void {
    if (!this.#byId.has(from)) {
      const guess = nearest(from, this.#byId.keys());
      const hint = guess && `did you mean \`${guess}\`?`;
      this.#problem(index, 'from', { message: `there is no step \`${from}\``, hint });
    } else if (!this.#comesAfter(model, from)) {
      const message = `step \`${model.id}\` does not come after step \`${from}\`, so there may be nothing to land yet`;
      this.#problem(index, 'from', { message, hint: `let it come after \`${from}\`` });
    } else if (this.#placed.get(from)?.work !== 'worktree') {
      this.#problem(index, 'from', { message: `step \`${from}\` ${this.#whyNoWork(from)}` });
    }
  }

  #onlyWork(index: number, reach: Reach): string | undefined {
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
            message: 'nothing that this step comes after leaves work to land',
            hint: 'let it come after a step that works in a workspace',
          }
        : {
            message: `it must say whose work it lands: that of ${choices.map(id => `\`${id}\``).join(' or ')}`,
            hint: `write \`from: ${choices[0]}\``,
          },
    );
    return undefined;
  }

  #whyNoWork(id: string): string {
    const placed = this.#placed.get(id);
    if (placed?.work === 'readonly') return 'leaves no work: its workspace is read-only';
    if (placed?.work === 'worktree')
      return 'fans out without `select`, so it leaves several works and not one';
    return 'leaves no work: it has no workspace of its own';
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

interface Asked<Place> {
  readonly place: Place;
  readonly index: number;
  readonly reach: Reach;
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

function workOf(body: Body): Placed['work'] {
  const workspace = body.kind === 'run' || body.kind === 'agent' ? body.work?.workspace : undefined;
  if (workspace?.kind !== 'worktree') return 'none';
  return workspace.readonly ? 'readonly' : 'worktree';
}
