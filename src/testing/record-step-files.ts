import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Stage } from '../cases/perform/stage.ts';
import { sha256 } from '../cases/record/case-files.ts';
import { distil, readActivities } from '../cases/record/distil.ts';
import type { StepRecording } from '../cases/record/record-step.ts';
import { type LoadedRecording, recordedFiles } from '../cases/replay/load.ts';
import { readJournal } from '../effects/recording/journal-reader.ts';
import { parseScore, scoreFileName, writeScore } from '../effects/recording/score-file.ts';
import { tapeFileName } from '../effects/recording/tape-file.ts';
import type { Redactor } from '../effects/redact/redact.ts';
import { sessionFileName } from '../engine/recording/session-file.ts';
import type { Repository } from '../git/repository.ts';
import { mainOf } from './stage-result.ts';
import { madeNow } from './versions.ts';

export interface Composition extends StepRecording {
  readonly stage: Stage;
  readonly loaded: LoadedRecording;
  readonly journal: string;
  readonly redactor: Redactor;
  readonly repository: Repository;
  /** An empty folder. */
  readonly target: string;
}

/** Writes a whole recording: new files of one step, a new score, and the files of all others as they are. */
export async function composeRecording(composition: Composition): Promise<void> {
  const { found, manifest, step, context, stage, journal, redactor, repository, target } = composition;
  const steps = manifest.steps.filter(({ script }) => script === undefined).map(({ name }) => name);
  const kept = keptFiles(composition);
  await distil(
    {
      case: found.name,
      recording: await readJournal(join(journal, 'entries.jsonl')),
      activities: readActivities(journal),
      objectsDir: join(journal, 'objects'),
      repository,
      base: stage.base,
      redactor,
      made: await madeNow(stage.git, context),
      main: await mainOf(stage, manifest.base?.branch ?? 'main'),
      steps,
      files: hashesOf(found.folder, kept),
    },
    target,
  );
  const tapes = steps.filter(name => name !== step).map(name => tapeFileName(found.name, name));
  const copied = [...kept, ...tapes, ...(manifest.base ? [manifest.base.pack] : [])];
  for (const file of copied) cpSync(join(found.folder, file), join(target, file));
  rewriteScore(join(target, scoreFileName(found.name)), hashesOf(target, tapes));
}

/** Sessions of the other steps, what was written by hand, and all that these need. */
function keptFiles({ found: { folder }, manifest, step, loaded }: Composition): readonly string[] {
  const replaced = new Set(
    loaded.sessions
      .filter(({ task }) => task.startsWith(`${step}.`))
      .map(session => `sessions/${sessionFileName(session)}`)
      .flatMap(file => [file, file.replace(/\.jsonl$/, '.patch')]),
  );
  const files = recordedFiles(folder).filter(file => !replaced.has(file));
  const texts = files.filter(isSession).map(file => readFileSync(join(folder, file), 'utf8'));
  const isNeeded = (blob: string) =>
    blob === manifest.base?.pack || texts.some(text => text.includes(blob.slice('blobs/'.length)));
  return files.filter(file => !file.startsWith('blobs/') || isNeeded(file));
}

const isSession = (file: string): boolean => file.startsWith('sessions/') && file.endsWith('.jsonl');

const hashesOf = (folder: string, files: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(files.map(file => [file, sha256(readFileSync(join(folder, file)))]));

function rewriteScore(file: string, hashes: Readonly<Record<string, string>>): void {
  const { header, entries } = parseScore({ file, text: readFileSync(file, 'utf8') });
  writeFileSync(file, writeScore({ header: { ...header, files: { ...header.files, ...hashes } }, entries }));
}
