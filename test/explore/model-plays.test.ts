import { afterEach, describe, expect, it } from 'vitest';
import { modelOf } from '../../src/git/model/load.ts';
import type { Model } from '../../src/git/model/repository.ts';
import { openRepository } from '../../src/git/repository.ts';
import { modelOfCase, playOn, type ReadyCase, readyCase } from '../cases/play-case.ts';

let ready: ReadyCase | undefined;
afterEach(() => ready?.stage.remove());

const stateOf = ({ refs, worktrees }: Model) => ({
  refs: Object.fromEntries([...refs].sort()),
  worktrees: Object.fromEntries(
    [...worktrees].sort().map(([path, { head, files, staged }]) => [path, { head, files, staged }]),
  ),
});

describe('a case played in a model', () => {
  it.each([
    'workers/concurrent_workers',
    'workers/three_workers',
    'workers/landing_conflict',
    'workers/landing_parked',
    'workers/verify_fails',
    'workers/garbled_transition',
    'workers/priority_dispatch',
    'workers/until_idle',
    'landing/three_runs',
    'landing/landing_conflict',
    'landing/conflict_among_workers',
    'landing/group_in_the_middle',
  ])('has the same outcome as on git: %s', { timeout: 120_000 }, async name => {
    ready = await readyCase(name);
    const model = await modelOfCase(ready);
    const inMemory = await playOn(ready, model);
    expect(inMemory.missing).toEqual([]);
    const onGit = await playOn(ready, undefined);
    const repository = await openRepository({ cwd: ready.stage.repo, env: ready.env });
    expect(inMemory).toEqual(onGit);
    expect(stateOf(model)).toEqual(stateOf(await modelOf(repository)));
  });
});
