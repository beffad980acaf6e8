import { branchRef, type Model } from '../../../git/model/repository.ts';
import type { EventStore } from '../../../store/port.ts';
import { type Fact, isKeptApart } from './shared-state.ts';

type Facts = (readonly [string, Fact])[];

const fact = (name: string, keys: readonly string[], value: unknown): readonly [string, Fact] => [
  name,
  { keys, value: JSON.stringify(value) ?? '' },
];

/** What is in a model of a repository, with the keys that stand for it. The places of agents are files also there. */
export function modelFacts(model: Model, root: string): Facts {
  const facts: Facts = [];
  for (const [ref, commit] of model.refs) {
    if (isKeptApart(ref)) continue;
    const branch = ref.startsWith(heads) ? ref.slice(heads.length) : ref;
    const workspaces = model.checkoutsOf(branch).filter(({ path }) => path !== root);
    facts.push(fact(ref, [`ref:${branch}`, ...workspaces.map(({ path }) => `wt:${path}`)], commit));
  }
  for (const [path, worktree] of model.worktrees) {
    const { head, files, staged, isSetUp, mark, label } = worktree;
    if (path === root) {
      facts.push(fact('HEAD', ['ref:HEAD'], [head, model.headOf(worktree)]));
      facts.push(fact('the files of the project', ['ref:HEAD', `wt:${root}`], [files, staged]));
      continue;
    }
    facts.push(fact(`the worktree ${path}`, ['gitworktrees'], label));
    facts.push(fact(`what is in ${path}`, [`wt:${path}`], [head, files, staged, isSetUp, mark]));
  }
  for (const [branch, { landed, ...made }] of model.records) {
    facts.push(fact(`the record of ${branch}`, [`ref:${branch}`], made));
    if (landed) facts.push(fact(`the note that ${branch} has landed`, [`landed:${branch}`], landed));
  }
  for (const [key, range] of model.ports) facts.push(fact(`the ports of ${key}`, ['ports'], range));
  for (const [branch, commit] of model.pushed)
    facts.push(fact(`${branch} of the remote`, [`remote:`], commit));
  facts.push(fact('the lock for landing', ['lock:land'], model.landing));
  return facts;
}

const heads = branchRef('');

/** What is in a store, with the keys that stand for it. What was read of a history once is not read again. */
export class StoreFacts {
  readonly #store: EventStore;
  readonly #lengths = new Map<string, number>();

  constructor(store: EventStore) {
    this.#store = store;
  }

  async facts(): Promise<Facts> {
    const { claims, workers } = this.#store;
    const facts: Facts = [];
    for (const { runId, owner, ...rest } of await this.#store.list()) {
      facts.push(fact(`the lease of run ${runId}`, [`lease:${runId}`], owner));
      facts.push(fact(`the status of run ${runId}`, [`status:${runId}`], rest));
      facts.push(fact(`the history of run ${runId}`, [`store:${runId}`], await this.#lengthOf(runId)));
      for (const { id, ...message } of await this.#store.inbox(runId))
        facts.push(fact(`message ${id} for run ${runId}`, [`inbox:${runId}`], message));
    }
    for (const claim of await claims.list())
      facts.push(fact(`the claim of ${claim.task}`, [`claim:${claim.task}`], claim));
    for (const worker of await workers.list())
      facts.push(fact(`worker ${worker.name}`, [`worker:${worker.incarnation}`], worker));
    return facts;
  }

  async #lengthOf(runId: string): Promise<number> {
    const before = this.#lengths.get(runId) ?? 0;
    const length = before + (await this.#store.read(runId, before)).length;
    this.#lengths.set(runId, length);
    return length;
  }
}
