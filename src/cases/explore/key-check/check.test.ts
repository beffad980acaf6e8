import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { toTimestamp } from '../../../core/time.ts';
import type { Keys } from '../../../effects/effect.ts';
import { createLiveWorld } from '../../../effects/live-world.ts';
import { takeToken } from '../../../git/lock-file.ts';
import { modelOf } from '../../../git/model/load.ts';
import { Lab } from '../../../git/test-support.ts';
import { memoryStore } from '../../../store/memory.ts';
import type { EventStore } from '../../../store/port.ts';
import { openSqliteStore } from '../../../store/sqlite/store.ts';
import { KeyCheck, type SharedState } from './check.ts';
import { GitState, modelFacts, StoreFacts, StoreRows } from './states.ts';

const at = toTimestamp(1_767_225_600_000);
const owner = { incarnation: 'ann', host: 'here', pid: 1, processStart: '1' };

/** Says what is wrong with an effect of these keys that does this. */
async function watched(look: () => Promise<SharedState>, keys: Keys, perform: () => unknown) {
  const check = new KeyCheck(look);
  const live = createLiveWorld();
  const act = check.world(live, 'worker_a').effect<void, void>({
    name: 'planted.write',
    span: 'short',
    keys: () => keys,
    perform: async () => void (await perform()),
  });
  await live.open('worker_a', () => act());
  return check.violation;
}

const startRun = (store: EventStore) =>
  store.createRun({ runId: 'r1', workflow: 'fix', owner, expiresAt: at, at, events: [] });
const claimOf = { task: 'fix', runId: 'r1', version: '1', by: 'ann', at, seen: 0 };

describe('what an effect changes on git', () => {
  let lab: Lab;
  let store: EventStore;
  let rows: StoreRows;
  let look: () => Promise<SharedState>;

  beforeEach(async () => {
    lab = new Lab();
    const file = join(lab.root, '.reprise/state/reprise.db');
    store = await openSqliteStore({ file });
    rows = new StoreRows(file);
    const state = new GitState(lab.root);
    look = async () => new Map([...state.facts(), ...(await rows.facts())]);
    await startRun(store);
  });
  afterEach(async () => {
    rows.close();
    await store.close();
  });

  it.each<[string, string, () => unknown]>([
    ['refs/heads/fix', 'ref:fix', () => lab.git('branch', 'fix')],
    ['HEAD', 'ref:HEAD', () => lab.git('commit', '--quiet', '--allow-empty', '--message=more')],
    ['notes.txt', 'ref:HEAD', () => writeFileSync(join(lab.root, 'notes.txt'), 'hello\n')],
    ['.git/reprise/locks/land/1', 'lock:land', () => take('.git/reprise/locks/land')],
    [
      '.reprise/state/locks/agents/dispatch/1/1',
      'slot:dispatch',
      () => take('.reprise/state/locks/agents/dispatch/1'),
    ],
    ['the lease of run r1', 'lease:r1', () => store.renew('r1', { epoch: 1, incarnation: 'ann' }, later)],
    ['message 1 for run r1', 'inbox:r1', () => store.post('r1', { kind: 'cancel', reason: 'no' }, at)],
    ['the claim of fix', 'claim:fix', () => store.claims.take(claimOf)],
  ])('is told if it does not say so: %s', async (what, key, perform) => {
    expect(await watched(look, { reads: [key], writes: ['store:r1'] }, perform)).toEqual({
      what: 'undeclared write of planted.write',
      message: expect.stringMatching(
        new RegExp(
          `^planted.write of worker_a changed ${what}, which is ${key}\\b.*; it says that it writes store:r1$`,
        ),
      ),
    });
  });

  it('is fine if it says so, or says that it writes all of a kind', async () => {
    const fine = async (writes: readonly string[], perform: () => unknown) =>
      expect(await watched(look, { writes }, perform)).toBeUndefined();
    await fine(['ref:fix'], () => lab.git('branch', 'fix'));
    await fine(['claim:'], () => store.claims.take(claimOf));
    await fine([], () => lab.git('status'));
    await fine([], () => lab.git('pack-refs', '--all'));
    await fine(['gitworktrees', `wt:${lab.folder}/work`, 'ref:work'], () =>
      lab.git('worktree', 'add', '--quiet', '-b', 'work', `${lab.folder}/work`),
    );
    await fine([`wt:${lab.folder}/work`], () =>
      lab.git('-C', `${lab.folder}/work`, 'commit', '--quiet', '--allow-empty', '--message=in its workspace'),
    );
  });

  const later = toTimestamp(1_767_225_700_000);
  const take = (folder: string) => {
    mkdirSync(join(lab.root, folder), { recursive: true });
    takeToken(join(lab.root, folder), { token: 1, owner });
  };
});

describe('what an effect changes in memory', () => {
  it('is told if it does not say so', async () => {
    const lab = new Lab();
    const model = await modelOf(await lab.open());
    const store = memoryStore();
    const stored = new StoreFacts(store);
    const look = async () => new Map([...modelFacts(model, lab.root), ...(await stored.facts())]);
    const tell = async (perform: () => unknown) =>
      (await watched(look, { writes: ['store:r1', 'lease:r1'] }, perform))?.message;
    const tip = model.tip('main') ?? '';
    expect(await tell(() => model.refs.set('refs/heads/fix', tip))).toMatch(
      /changed refs\/heads\/fix, which is ref:fix;/,
    );
    expect(await tell(() => startRun(store))).toMatch(/changed the status of run r1, which is status:r1;/);
    expect(await tell(() => store.claims.take(claimOf))).toMatch(
      /changed the claim of fix, which is claim:fix;/,
    );
    expect(
      await tell(() => {
        model.landing = { token: 1, holder: { owner, token: 1 } };
      }),
    ).toMatch(/changed the lock for landing, which is lock:land;/);
    expect(await tell(() => store.renew('r1', { epoch: 1, incarnation: 'ann' }, at))).toBeUndefined();
  });
});
