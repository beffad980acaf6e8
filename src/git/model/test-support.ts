import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { toErrorData } from '../../core/errors.ts';
import { toTimestamp } from '../../core/time.ts';
import { abortResolution, beginResolution, continueResolution } from '../conflict/resolve.ts';
import { land } from '../landing/advance.ts';
import { committer } from '../names.ts';
import type { Repository } from '../repository.ts';
import { Lab } from '../test-support.ts';
import { deliverOnBranch, parkOnBranch } from '../workspace/branch-records.ts';
import { createWorkspace as realCreate } from '../workspace/create.ts';
import { removeWorkspace as realRemove } from '../workspace/remove.ts';
import { resetWorkspace as realReset } from '../workspace/reset.ts';
import { changesIn as realChangesIn, saveWork as realSaveWork } from '../workspace/save.ts';
import { giveUp, layOut, takeSolution } from './conflicts.ts';
import { lockLanding, moveLanding, prepareLanding, unlockLanding } from './landing.ts';
import { modelOf } from './load.ts';
import type { Model } from './repository.ts';
import {
  changesIn,
  createWorkspace,
  keepOnBranch,
  removeWorkspace,
  resetWorkspace,
  saveWork,
} from './workspaces.ts';

/** Operation that runs on a repository and on its model. `work` is the number of a workspace. */
export type Operation =
  | { readonly kind: 'create' | 'commit' | 'reset' | 'land' | 'remove' | 'changes'; readonly work: number }
  | { readonly kind: 'park' | 'deliver'; readonly work: number; readonly task: string }
  | {
      readonly kind: 'write';
      /** `undefined` for the user's checkout. */
      readonly work?: number | undefined;
      readonly path: string;
      readonly text: string | undefined;
    }
  | {
      readonly kind: 'solve';
      readonly work: number;
      /** New text of the conflicted files. `undefined` leaves them with their markers. */
      readonly text: string | undefined;
      readonly isAborted: boolean;
    };

const at = toTimestamp(1_767_225_600_000);
const lease = { epoch: 1, incarnation: 'tester' };

/** A real repository and its model. */
export class Twins {
  readonly lab: Lab;
  readonly repository: Repository;
  readonly model: Model;
  readonly #base: string;

  private constructor(lab: Lab, repository: Repository, model: Model) {
    this.lab = lab;
    this.repository = repository;
    this.model = model;
    this.#base = lab.git('rev-parse', 'HEAD');
  }

  static async made(files: Readonly<Record<string, string>>): Promise<Twins> {
    const lab = new Lab();
    for (const [name, text] of Object.entries(files)) lab.write(name, text);
    lab.git('add', '--all');
    lab.git('commit', '--quiet', '--allow-empty', '--message=Furnish');
    const repository = await lab.open();
    return new Twins(lab, repository, await modelOf(repository));
  }

  /** Runs the operation on both sides, and returns the outcomes as data. */
  async both(operation: Operation): Promise<readonly [real: unknown, modelled: unknown]> {
    return [await outcomeOf(() => this.#really(operation)), await outcomeOf(() => this.#inModel(operation))];
  }

  /** Returns the observable state of both sides. */
  async states(): Promise<readonly [real: unknown, modelled: unknown]> {
    const { refs, worktrees, records } = await modelOf(this.repository);
    const view = (model: Pick<Model, 'refs' | 'worktrees' | 'records'>) => ({
      refs: sorted(model.refs),
      worktrees: sorted(model.worktrees).map(([path, { isSetUp: _, mark: _mark, ...worktree }]) => [
        path,
        worktree,
      ]),
      records: sorted(model.records),
    });
    return [view({ refs, worktrees, records }), view(this.model)];
  }

  #place(work: number) {
    const path = this.lab.workspace(`w${work}`);
    return { path, branch: `reprise/flow/run/w${work}`, base: this.#base };
  }

  async #really(operation: Operation): Promise<unknown> {
    const { repository, lab } = this;
    const { owner } = lab;
    if (operation.kind === 'write') return this.#writeFile(operation);
    const { path, branch, base } = this.#place(operation.work);
    const place = { repository, owner, path };
    switch (operation.kind) {
      case 'create': {
        const { made, wasAlone } = await realCreate({ ...place, branch, base, run: 'run' });
        return { isFound: made === 'reused', isSetUp: false, wasAlone };
      }
      case 'commit':
        return realSaveWork(repository, { path, branch, base, message: 'Work\n\nMore', at });
      case 'changes':
        return realChangesIn(repository, { path, branch, base, ignoring: [] });
      case 'reset':
        await realReset({ ...place, commit: base });
        return undefined;
      case 'remove':
        return realRemove({ ...place, branch });
      case 'park':
        return parkOnBranch({ repository, commit: tipIn(this.model, branch), name: operation.task });
      case 'deliver':
        return deliverOnBranch({ repository, commit: tipIn(this.model, branch), name: operation.task });
      case 'land': {
        const landing = await land({ repository, owner, source: { branch }, onto: 'main' });
        const { why: _, hint: _hint, ...rest } = { why: '', hint: '', ...landing };
        return rest;
      }
      case 'solve': {
        const onto = tipIn(this.model, 'main');
        const begun = await beginResolution({ ...place, branch, onto, ontoName: 'main' });
        if (begun.kind === 'fits') return begun;
        const { resolution } = begun;
        if (operation.isAborted) {
          await abortResolution({ ...place, resolution });
          return [begun];
        }
        if (operation.text !== undefined)
          for (const file of resolution.files) lab.write(file.path, operation.text, path);
        const taken = await continueResolution({ ...place, resolution, committer, at });
        if (taken.kind !== 'resolved') await abortResolution({ ...place, resolution });
        return [begun, taken];
      }
    }
  }

  async #inModel(operation: Operation): Promise<unknown> {
    const { model } = this;
    if (operation.kind === 'write') return this.#writeModel(operation);
    const { path, branch, base } = this.#place(operation.work);
    switch (operation.kind) {
      case 'create':
        return createWorkspace(model, {
          runId: 'run',
          lease,
          unit: { step: 's', attempt: 1 },
          path,
          branch,
          base,
        });
      case 'commit':
        return saveWork(model, { path, branch, base, message: 'Work\n\nMore', at });
      case 'changes':
        return changesIn(model, { path, branch, base, ignoring: [] });
      case 'reset':
        return resetWorkspace(model, { path, commit: base });
      case 'remove':
        return removeWorkspace(model, { path, branch });
      case 'park':
        return keepOnBranch(model, 'parked', { task: operation.task, commit: tipIn(model, branch) });
      case 'deliver':
        return keepOnBranch(model, 'task', { task: operation.task, commit: tipIn(model, branch) });
      case 'land':
        return landInModel(model, branch);
      case 'solve': {
        const onto = tipIn(model, 'main');
        const begun = layOut(model, { path, branch, onto, ontoName: 'main' });
        if (begun.kind === 'fits') return begun;
        const { resolution } = begun;
        if (operation.isAborted) {
          giveUp(model, { path, resolution });
          return [begun];
        }
        if (operation.text !== undefined)
          for (const file of resolution.files) writeInto(model, path, { ...file, text: operation.text });
        const taken = takeSolution(model, { path, resolution, at });
        if (taken.kind !== 'resolved') giveUp(model, { path, resolution });
        return [begun, taken];
      }
    }
  }

  #folder(work: number | undefined): string {
    return work === undefined ? this.lab.root : this.#place(work).path;
  }

  #writeFile({ work, path, text }: Extract<Operation, { kind: 'write' }>): void {
    const folder = this.#folder(work);
    if (!existsSync(folder)) return;
    if (text === undefined) rmSync(join(folder, path), { force: true });
    else this.lab.write(path, text, folder);
  }

  #writeModel({ work, path, text }: Extract<Operation, { kind: 'write' }>): void {
    if (this.model.worktrees.has(this.#folder(work)))
      writeInto(this.model, this.#folder(work), { path, text });
  }
}

function writeInto(
  model: Model,
  folder: string,
  { path, text }: { readonly path: string; readonly text: string | undefined },
): void {
  const worktree = model.worktrees.get(folder);
  if (!worktree) throw new Error(`no worktree at ${folder}`);
  const entry = text === undefined ? undefined : { mode: '100644', id: model.objects.addBlob(text) };
  model.change(worktree, { files: model.trees.with(worktree.files, path, entry) });
}

/** Runs all phases of a landing, and returns the same result as the real one. */
async function landInModel(model: Model, branch: string): Promise<unknown> {
  const onto = 'main';
  const owner = { incarnation: 'tester', pid: 1, processStart: '1', host: 'here' };
  const { token } = lockLanding(model, { key: branch }, { owner, isAlive: () => true });
  try {
    const prepared = await prepareLanding(model, { branch, onto });
    if (prepared.kind === 'nothing') return { ...prepared, kind: 'nothing-to-land', target: onto };
    if (prepared.kind === 'conflict') {
      const { workAt: _, ...rest } = prepared;
      return { ...rest, target: onto };
    }
    if (prepared.kind === 'in-the-way') return checkoutBlocked(prepared);
    const moved = await moveLanding(
      model,
      { branch, onto, ready: prepared },
      { held: token, mayLand: async () => true },
    );
    if (moved.kind === 'in-the-way') return checkoutBlocked(moved);
    if (moved.kind !== 'moved') return moved;
    const { commits, checkout, wasAlone } = moved;
    const subjects = commits.map(({ subject }) => subject);
    const { commit, from } = prepared;
    return { kind: 'landed', target: onto, commit, from, commits, subjects, checkout, token, wasAlone };
  } finally {
    unlockLanding(model, token);
  }
}

const checkoutBlocked = ({ path, files }: { readonly path: string; readonly files: readonly string[] }) => ({
  kind: 'main-checkout-in-the-way',
  target: 'main',
  path,
  files,
});

const tipIn = (model: Model, branch: string): string => model.tip(branch) ?? 'f'.repeat(40);

/** Reduces an error to its code, because messages name different folders. */
async function outcomeOf(act: () => Promise<unknown>): Promise<unknown> {
  try {
    return { ok: await act() };
  } catch (error) {
    return { error: toErrorData(error).code };
  }
}

const sorted = <T>(map: ReadonlyMap<string, T>): readonly (readonly [string, T])[] =>
  [...map].sort(([a], [b]) => (a < b ? -1 : 1));
