import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { failureOfError } from '../cases/perform/failures.ts';
import { type Stage, stageOf } from '../cases/perform/stage.ts';
import { leakError, scanForLeaks } from '../cases/record/leak-scan.ts';
import { replaceRecording } from '../cases/record/record.ts';
import { playOneLive, type StepRecording } from '../cases/record/record-step.ts';
import { loadRecording } from '../cases/replay/load.ts';
import { type Replayed, replayCase } from '../cases/replay/replay.ts';
import type { CaseFailure } from '../cases/result.ts';
import { nearest } from '../core/suggest.ts';
import { composeRecording } from './record-step-files.ts';

/**
 * Records one step of a case again: it is played for real, while all others are held to what was recorded of them. What
 * came of it is then replayed as a whole, and that replay is given back. The files of the step, and the score, are
 * replaced only if everything that the case expects holds, and nothing leaked.
 */
export async function recordStep(recording: StepRecording): Promise<Replayed> {
  const { found, manifest, context } = recording;
  const problem = problemOf(recording);
  if (problem) return { failures: [problem], played: [] };
  let stage: Stage | undefined;
  let folder: string | undefined;
  try {
    const loaded = loadRecording(found, manifest, context.cwd);
    // Beside the case, so that what a crash leaves can be found; on the same disk, so that it can be moved.
    folder = mkdtempSync(join(found.folder, '.recording-'));
    stage = await stageOf(found, manifest, context);
    const journal = join(folder, 'journal');
    const played = await playOneLive(stage, { ...recording, loaded, journal });
    if (played.failures.length > 0) return played;
    const target = join(folder, 'case');
    mkdirSync(target);
    await composeRecording({ ...recording, ...played, stage, loaded, journal, target });
    const leaks = await scanForLeaks({
      folder: target,
      secrets: played.secrets,
      objects: [join(stage.repo, '.git', 'objects')],
    });
    if (leaks.length > 0) throw leakError(leaks);
    const replayed = await replayCase({ ...found, folder: target }, manifest, context);
    if (replayed.failures.length === 0) replaceRecording(found, target);
    return replayed;
  } catch (error) {
    return { failures: [failureOfError(error, found.displayFile)], played: [] };
  } finally {
    stage?.remove();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

/** Why a step cannot be recorded alone, as far as the case file tells. */
function problemOf({ found, manifest, step }: Omit<StepRecording, 'context'>): CaseFailure | undefined {
  const { displayFile: file, name } = found;
  const refused = (message: string, hint: string): CaseFailure => ({
    kind: 'definition',
    message,
    hint,
    file,
  });
  if (manifest.form === 'worker_test') {
    const message = `${file} is put together by hand, and nothing of it is recorded`;
    return refused(message, 'change the sessions that it names');
  }
  const recorded = manifest.steps.filter(({ script }) => script === undefined).map(each => each.name);
  const command = `reprise test ${name} --record --step`;
  const choice = `steps that can be recorded: ${recorded.join(', ')}\n${command} ${recorded[0] ?? '<step>'}`;
  const chosen = manifest.steps.find(each => each.name === step);
  if (!chosen) {
    const meant = nearest(step, recorded);
    const hint = meant === undefined ? choice : `did you mean: ${command} ${meant}`;
    return refused(`${file} has no step ${step}`, hint);
  }
  if (chosen.script === undefined) return undefined;
  return refused(`step ${step} of ${file} is a script, which runs for real each time`, choice);
}
