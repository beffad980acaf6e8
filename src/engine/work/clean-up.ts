import { posix } from 'node:path';
import { toErrorData } from '../../core/errors.ts';
import { toTimestamp } from '../../core/time.ts';
import type { WorkRules } from '../../workflow/model.ts';
import type { StepEnd } from '../run/messages.ts';
import type { WorkLane } from '../step/contract.ts';
import type { Place } from '../step/workspace.ts';
import { unitOf } from '../unit.ts';
import { bestEffort, type Done, endOfThrown, failedWith } from './ends.ts';
import { commitMessage } from './words.ts';

/** How long clean-up may take: nobody waits for it for ever. */
const teardownMs = 60_000;

interface Ended {
  readonly rules: WorkRules;
  readonly place: Place;
  readonly done: Done;
}

/** Keeps the work and tears down what surrounded it. What is paused goes on in the same folder, as it was left. */
export async function cleanUp(lane: WorkLane, { rules, place, done }: Ended): Promise<StepEnd> {
  if (done.end.kind === 'paused') return done.end;
  const end = place.workspace ? await keep(lane, { rules, place, done }) : done.end;
  await tearDown(lane, rules, place);
  return end;
}

/** Nothing that was done is lost, however it ended; but only what is kept has succeeded. */
async function keep(lane: WorkLane, { rules, place, done }: Ended): Promise<StepEnd> {
  const { workspace } = place;
  if (!workspace) return done.end;
  try {
    return workspace.readonly
      ? await keepUnchanged(lane, { rules, workspace, end: done.end })
      : await keepWork(lane, { workspace, done });
  } catch (thrown) {
    const end = endOfThrown(thrown);
    if (!end) throw thrown;
    if (done.end.kind === 'completed') return end;
    noticeOf(lane, 'the unfinished work could not be kept', toErrorData(thrown).message);
    return done.end;
  }
}

async function keepWork(
  lane: WorkLane,
  { workspace, done }: { readonly workspace: NonNullable<Place['workspace']>; readonly done: Done },
): Promise<StepEnd> {
  const { path, branch, base } = workspace;
  const summary = done.end.kind === 'completed' ? done.summary : 'unfinished work';
  const at = toTimestamp(await lane.effects.now());
  const message =
    (done.end.kind === 'completed' ? done.message : undefined) ?? commitMessage(lane.unit, summary);
  const saved = await lane.effects.saveWork({ path, branch, base, message, at });
  lane.conclude({ type: 'workspace.saved', data: saved });
  return done.end;
}

async function keepUnchanged(
  lane: WorkLane,
  {
    rules,
    workspace,
    end,
  }: {
    readonly rules: WorkRules;
    readonly workspace: NonNullable<Place['workspace']>;
    readonly end: StepEnd;
  },
): Promise<StepEnd> {
  const { effects, runId, lease, unit } = lane;
  const { path, branch, base } = workspace;
  const folder = { path, branch, base };
  const takeBack = () =>
    bestEffort(
      () => effects.resetWorkspace({ ...folder, runId, lease, unit }),
      ({ message }) => noticeOf(lane, 'the workspace could not be put back', message),
    );
  if (end.kind !== 'completed') {
    await takeBack();
    return end;
  }
  const changed = await effects.changesIn({
    ...folder,
    ignoring: rules.artifacts.map(artifact => posix.normalize(artifact.path)),
  });
  if (changed.length === 0) return end;
  await takeBack();
  const shown = changed.slice(0, shownFiles).join(', ');
  const more = changed.length > shownFiles ? ` and ${changed.length - shownFiles} more` : '';
  return failedWith({
    code: 'READONLY_CHANGED',
    message: `nothing may change in the workspace of this step, but this did: ${shown}${more}`,
    hint: 'the changes were put aside; let the step work in a workspace of its own, or let it leave files alone',
  });
}

const shownFiles = 5;

async function tearDown(lane: WorkLane, { teardown }: WorkRules, place: Place): Promise<void> {
  const { effects, runId, lease, unit, scope } = lane;
  if (teardown.length === 0) return;
  // What is torn down has to be set up again, should anybody work there once more.
  if (place.workspace) await effects.markSetUp({ path: place.folder, done: false });
  for (const [index, { text, command }] of teardown.entries()) {
    await bestEffort(
      async () => {
        const { end } = await effects.cleanupShell({
          runId,
          lease,
          unit,
          what: `teardown-${index + 1}`,
          command: command(scope),
          folder: place.folder,
          env: place.env,
          limitMs: teardownMs,
        });
        if (end.kind === 'failed') noticeOf(lane, `the teardown \`${text}\` failed`, end.error.message);
        if (end.kind === 'cancelled')
          noticeOf(lane, `the teardown \`${text}\``, `took longer than ${teardownMs / 1000} s and was ended`);
      },
      ({ message }) => noticeOf(lane, `the teardown \`${text}\` failed`, message),
    );
  }
}

const noticeOf = ({ effects, unit }: WorkLane, what: string, message: string): void =>
  effects.notice(`${unitOf(unit.step, unit.worker)}: ${what}: ${message}`);
