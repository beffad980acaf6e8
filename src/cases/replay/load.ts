import { existsSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import { fileLimits, readRecordedFile } from '../../effects/index.ts';
import { scoreFileName, tapeFileName } from '../../effects/recording/index.ts';
import { withStatePlace } from '../../effects/redact/index.ts';
import { parseSessionFile, type RecordedActivity } from '../../engine/recording/index.ts';
import type { FoundCase } from '../manifest/find.ts';
import type { CaseManifest } from '../manifest/manifest.ts';
import { type CaseRecording, fromCaseFiles, sha256 } from '../record/case-files.ts';

/** Recording of a case. */
export interface LoadedRecording {
  readonly recording: CaseRecording;
  readonly sessions: readonly RecordedActivity[];
  blob(sha: string): Uint8Array;
}

const hasRecording = ({ folder, name }: FoundCase): boolean => existsSync(join(folder, scoreFileName(name)));

/** Loads the recording of a case. Throws NOT_RECORDED, TAPE_INVALID, or REPLAY_DIVERGED for files of another format. */
export function loadRecording(found: FoundCase, manifest: CaseManifest, cwd: string): LoadedRecording {
  const { folder, name } = found;
  if (!hasRecording(found)) {
    throw new RepriseError('NOT_RECORDED', `${found.displayFile} has not been recorded`, {
      hint: `record it: reprise test ${name} --record`,
    });
  }
  const display = (file: string) => relative(cwd, join(folder, file));
  const read = (file: string, maxBytes: number = fileLimits.recording) =>
    readRecordedFile({ file: join(folder, file), displayFile: display(file), maxBytes });
  const text = (file: string) => read(file).toString('utf8');
  const tapes = readdirSync(folder).filter(file => file.endsWith('.vcr'));
  const files = Object.fromEntries([scoreFileName(name), ...tapes].map(file => [file, text(file)]));
  const others = recordedFiles(folder);
  const recording = fromCaseFiles({
    case: name,
    files,
    others: Object.fromEntries(others.map(file => [file, sha256(read(file, fileLimits.blob))])),
    display,
  });
  checkSteps(manifest, recording);
  const blob = (sha: string) => read(`blobs/${sha}`, fileLimits.blob);
  const sessions = others
    .filter(file => file.startsWith('sessions/') && file.endsWith('.jsonl'))
    .map(file => parseSessionFile(display(file), withStatePlace(text(file)), blob))
    .filter(session => session.kind !== 'written');
  return { recording, sessions, blob };
}

/** Returns the files of a recording except for its tapes and score. */
export const recordedFiles = (folder: string): readonly string[] =>
  ['sessions', 'blobs'].flatMap(part => {
    const below = join(folder, part);
    return existsSync(below)
      ? readdirSync(below)
          .sort()
          .map(file => `${part}/${file}`)
      : [];
  });

function checkSteps({ name, steps, displayFile }: CaseManifest, { tapes }: CaseRecording): void {
  const commands = steps.filter(({ script }) => script === undefined).map(step => step.name);
  const missing = commands.find(step => !tapes.has(step));
  const extra = [...tapes.keys()].find(step => !commands.includes(step));
  if (missing === undefined && extra === undefined) return;
  throw new RepriseError(
    'TAPE_INVALID',
    missing === undefined
      ? `${tapeFileName(name, extra ?? '')} belongs to a command that ${displayFile} no longer has`
      : `command ${missing} of ${displayFile} has no tape`,
    { hint: `record the case again: reprise test ${name} --record` },
  );
}
