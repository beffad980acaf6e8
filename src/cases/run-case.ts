import type { TestContext } from './context.ts';
import { hasRaces } from './explore/race-file.ts';
import type { FoundCase } from './manifest/find.ts';
import { readCase } from './manifest/load.ts';
import type { CaseManifest } from './manifest/manifest.ts';
import { failureOfError, resultOfCase } from './perform/failures.ts';
import { recordCase } from './record/record.ts';
import { recordStep } from './record/record-step.ts';
import { playComposed } from './replay/composed.ts';
import { type ReplayOutcome, replayCase, snapshotFile } from './replay/replay.ts';
import { type CaseFailure, type CaseResult, caseTitle } from './result.ts';
import { checkSnapshot, type SnapshotMode } from './snapshot/snapshot.ts';

export interface CaseOptions {
  /** Whether to perform the case for real and record it. */
  readonly record: boolean;
  /** Name of the only command to record. All others replay their recording. */
  readonly step?: string | undefined;
  readonly snapshots: SnapshotMode;
}

/** Performs one case and compares it with its snapshot. Problems of the case become failures, not exceptions. */
export async function runCase(
  found: FoundCase,
  options: CaseOptions,
  context: TestContext,
): Promise<CaseResult> {
  const began = performance.now();
  const outcome = await outcomeOf(found, options, context);
  return resultOfCase(found, outcome, performance.now() - began);
}

async function outcomeOf(found: FoundCase, { record, step, snapshots }: CaseOptions, context: TestContext) {
  let manifest: CaseManifest;
  try {
    manifest = readCase(found);
  } catch (error) {
    return { status: 'failed', failures: [failureOfError(error, found.displayFile)] } as const;
  }
  const { recordedBy } = manifest;
  const notes = recordedBy === undefined ? [] : [`to record it, type: ${recordedBy}`];
  if (record && recordedBy !== undefined && recordedBy !== context.env['REPRISE_RECORDED_BY'])
    return { status: 'skipped', failures: [], notes } as const;
  const failed = (failures: readonly CaseFailure[], played: ReplayOutcome['played']) =>
    ({ status: 'failed', failures, notes, played }) as const;
  const isComposed = manifest.form === 'worker_test';
  const play = isComposed ? playComposed : record ? recordCase : replayCase;
  const { failures, played, snapshot } =
    record && step !== undefined
      ? await recordStep({ found, manifest, step, context })
      : await play(found, manifest, context);
  if (failures.length > 0 || snapshot === undefined) return failed(failures, played);
  const verdict = await checkSnapshot({
    file: snapshotFile(found),
    displayFile: found.displayFile.replace(/\.toml$/, '.snap'),
    caseName: caseTitle(found),
    actual: snapshot,
    mode: record ? 'accept' : snapshots,
  });
  if (verdict.kind === 'failed') return failed([verdict.failure], played);
  const races = record ? [] : await otherOrders(found, manifest, context);
  if (races.length > 0) return failed(races, played);
  const status = record ? 'recorded' : verdict.kind === 'accepted' ? 'accepted' : 'passed';
  return { status, failures: [], played } as const;
}

/** Returns failures of other orders: known races, and explored orders if the case asks for them. */
async function otherOrders(
  found: FoundCase,
  { explore }: CaseManifest,
  context: TestContext,
): Promise<readonly CaseFailure[]> {
  if (!explore && !hasRaces(found.folder)) return [];
  const { checkOtherOrders } = await import('./explore/races.ts');
  try {
    return await checkOtherOrders(found, explore, context);
  } catch (error) {
    return [failureOfError(error, found.displayFile)];
  }
}
