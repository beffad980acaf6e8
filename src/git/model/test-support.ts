import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { toErrorData } from '../../core/errors.ts';
import { toTimestamp } from '../../core/time.ts';
import { abortResolution, beginResolution, continueResolution } from '../conflict/resolve.ts';
import { land } from '../landing/land-now.ts';
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

/** Something that is done to a repository and to its model alike. `work` is one of a few workspaces. */
export type Deed =
  | { readonly kind: 'create' | 'commit' | 'reset' | 'land' | 'remove' | 'changes'; readonly work: number }
  | { readonly kind: 'park' | 'deliver'; readonly work: number; readonly task: string }
  | {
      readonly kind: 'write';
      /** `undefined`: the checkout of the user. */
      readonly work?: number | undefined;
      readonly path: string;
      readonly text: string | undefined;
    }
  | {
      readonly kind: 'solve';
      readonly work: number;
      /** What a conflicted file becomes; `undefined`: it stays as it lies there. */
      readonly text: string | undefined;
      readonly isGivenUp: boolean;
    };

const at = toTimestamp(1_767_225_600_000);
const lease = { epoch: 1, incarnation: 'tester' };

/** A repository and its model, side by side. */
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

  /** What came of it on each side, as data. */
  async both(deed: Deed): Promise<readonly [real: unknown, modelled: unknown]> {
    return [await outcomeOf(() => this.#really(deed)), await outcomeOf(() => this.#inModel(deed))];
  }

  /** Everything that can be told apart. */
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

  async #really(deed: Deed): Promise<unknown> {
    const { repository, lab } = this;
    const { owner } = lab;
    if (deed.kind === 'write') return this.#writeFile(deed);
    const { path, branch, base } = this.#place(deed.work);
    const place = { repository, owner, path };
    switch (deed.kind) {
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
        return parkOnBranch({ repository, commit: tipIn(this.model, branch), name: deed.task });
      case 'deliver':
        return deliverOnBranch({ repository, commit: tipIn(this.model, branch), name: deed.task });
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
        if (deed.isGivenUp) {
          await abortResolution({ ...place, resolution });
          return [begun];
        }
        if (deed.text !== undefined)
          for (const file of resolution.files) lab.write(file.path, deed.text, path);
        const taken = await continueResolution({ ...place, resolution, committer, at });
        if (taken.kind !== 'resolved') await abortResolution({ ...place, resolution });
        return [begun, taken];
      }
    }
  }

  async #inModel(deed: Deed): Promise<unknown> {
    const { model } = this;
    if (deed.kind === 'write') return this.#writeModel(deed);
    const { path, branch, base } = this.#place(deed.work);
    switch (deed.kind) {
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
        return keepOnBranch(model, 'parked', { task: deed.task, commit: tipIn(model, branch) });
      case 'deliver':
        return keepOnBranch(model, 'task', { task: deed.task, commit: tipIn(model, branch) });
      case 'land':
        return landInModel(model, branch);
      case 'solve': {
        const onto = tipIn(model, 'main');
        const begun = layOut(model, { path, branch, onto, ontoName: 'main' });
        if (begun.kind === 'fits') return begun;
        const { resolution } = begun;
        if (deed.isGivenUp) {
          giveUp(model, { path, resolution });
          return [begun];
        }
        if (deed.text !== undefined)
          for (const file of resolution.files) writeInto(model, path, { ...file, text: deed.text });
        const taken = takeSolution(model, { path, resolution, at });
        if (taken.kind !== 'resolved') giveUp(model, { path, resolution });
        return [begun, taken];
      }
    }
  }

  #folder(work: number | undefined): string {
    return work === undefined ? this.lab.root : this.#place(work).path;
  }

  #writeFile({ work, path, text }: Extract<Deed, { kind: 'write' }>): void {
    const folder = this.#folder(work);
    if (!existsSync(folder)) return;
    if (text === undefined) rmSync(join(folder, path), { force: true });
    else this.lab.write(path, text, folder);
  }

  #writeModel({ work, path, text }: Extract<Deed, { kind: 'write' }>): void {
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

/** All steps of a landing, with the result that the real one gives. */
async function landInModel(model: Model, branch: string): Promise<unknown> {
  const onto = 'main';
  const owner = { incarnation: 'tester', pid: 1, processStart: '1', host: 'here' };
  const { token } = lockLanding(model, { key: branch }, { owner, isAlive: () => true });
  try {
    const prepared = prepareLanding(model, { branch, onto });
    if (prepared.kind === 'nothing')
      return { kind: 'nothing-to-land', target: onto, commit: prepared.commit };
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

/** An error is its code: what it says of a folder differs. */
async function outcomeOf(act: () => Promise<unknown>): Promise<unknown> {
  try {
    return { ok: await act() };
  } catch (error) {
    return { error: toErrorData(error).code };
  }
}

const sorted = <T>(map: ReadonlyMap<string, T>): readonly (readonly [string, T])[] =>
  [...map].sort(([a], [b]) => (a < b ? -1 : 1));
