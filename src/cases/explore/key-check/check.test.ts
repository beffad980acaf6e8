import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { toTimestamp } from '../../../core/time.ts';
import type { Keys } from '../../../effects/effect.ts';
import { createLiveWorld } from '../../../effects/live-world.ts';
import { tryLock } from '../../../git/lock.ts';
import { modelOf } from '../../../git/model/load.ts';
import { Lab } from '../../../git/test-support.ts';
import { memoryStore } from '../../../store/memory.ts';
import type { EventStore } from '../../../store/port.ts';
import { openSqliteStore } from '../../../store/sqlite/store.ts';
import { KeyCheck, type SharedFacts } from './check.ts';
import { GitState, modelFacts, StoreFacts, StoreRows } from './states.ts';

const at = toTimestamp(1_767_225_600_000);
const owner = { incarnation: 'ann', host: 'here', pid: 1, processStart: '1' };

/** Performs an effect with these keys and returns the violation that the check reports. */
async function watched(look: () => Promise<SharedFacts>, keys: Keys, perform: () => unknown) {
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

describe('the key check on git', () => {
  let lab: Lab;
  let store: EventStore;
  let rows: StoreRows;
  let look: () => Promise<SharedFacts>;

  beforeEach(async () => {
    lab = new Lab();
    const file = join(lab.root, '.git/reprise/reprise.db');
    store = await openSqliteStore({ file });
    rows = new StoreRows(file);
    const state = new GitState((await lab.open()).git);
    look = async () => new Map([...(await state.facts()), ...(await rows.facts())]);
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
    ['.git/reprise/locks/land/holder.json', 'lock:land', () => take('.git/reprise/locks/land')],
    [
      '.git/reprise/locks/agents/dispatch/1/holder.json',
      'slot:dispatch',
      () => take('.git/reprise/locks/agents/dispatch/1'),
    ],
    ['the lease of run r1', 'lease:r1', () => store.renew('r1', { epoch: 1, incarnation: 'ann' }, later)],
    ['message 1 for run r1', 'inbox:r1', () => store.post('r1', { kind: 'cancel', reason: 'no' }, at)],
    ['the claim of fix', 'claim:fix', () => store.claims.take(claimOf)],
  ])('reports an undeclared change to %s', async (what, key, perform) => {
    expect(await watched(look, { reads: [key], writes: ['store:r1'] }, perform)).toEqual({
      what: 'undeclared write of planted.write',
      message: expect.stringMatching(
        new RegExp(
          `^planted.write of worker_a changed ${what} \\(key ${key}\\b.*\\), but its keys only declare writes of store:r1$`,
        ),
      ),
    });
  });

  it('accepts changes that the effect declares by key or by prefix', async () => {
    const expectAccepted = async (writes: readonly string[], perform: () => unknown) =>
      expect(await watched(look, { writes }, perform)).toBeUndefined();
    await expectAccepted(['ref:fix'], () => lab.git('branch', 'fix'));
    await expectAccepted(['claim:'], () => store.claims.take(claimOf));
    await expectAccepted([], () => lab.git('status'));
    await expectAccepted([], () => lab.git('pack-refs', '--all'));
    await expectAccepted(['gitworktrees', `wt:${lab.folder}/work`, 'ref:work'], () =>
      lab.git('worktree', 'add', '--quiet', '-b', 'work', `${lab.folder}/work`),
    );
    await expectAccepted([`wt:${lab.folder}/work`], () =>
      lab.git('-C', `${lab.folder}/work`, 'commit', '--quiet', '--allow-empty', '--message=in its workspace'),
    );
  });

  const later = toTimestamp(1_767_225_700_000);
  const take = (folder: string) => {
    const lock = tryLock(join(lab.root, folder), { owner });
    onTestFinished(() => lock?.release());
  };
});

describe('the key check in memory', () => {
  it('reports undeclared changes', async () => {
    const lab = new Lab();
    const model = await modelOf(await lab.open());
    const store = memoryStore();
    const stored = new StoreFacts(store);
    const look = async () => new Map([...modelFacts(model, lab.root), ...(await stored.facts())]);
    const messageFor = async (perform: () => unknown) =>
      (await watched(look, { writes: ['store:r1', 'lease:r1'] }, perform))?.message;
    const tip = model.tip('main') ?? '';
    expect(await messageFor(() => model.refs.set('refs/heads/fix', tip))).toMatch(
      /changed refs\/heads\/fix \(key ref:fix\), but/,
    );
    expect(await messageFor(() => startRun(store))).toMatch(
      /changed the status of run r1 \(key status:r1\), but/,
    );
    expect(await messageFor(() => store.claims.take(claimOf))).toMatch(
      /changed the claim of fix \(key claim:fix\), but/,
    );
    expect(
      await messageFor(() => {
        model.landing = { token: 1, holder: { owner, token: 1 } };
      }),
    ).toMatch(/changed the landing lock \(key lock:land\), but/);
    expect(await messageFor(() => store.renew('r1', { epoch: 1, incarnation: 'ann' }, at))).toBeUndefined();
  });
});
