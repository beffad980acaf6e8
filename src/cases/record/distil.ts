import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Recording } from '../../effects/recording/recording.ts';
import type { ScoreHeader } from '../../effects/recording/score-file.ts';
import type { TapeHeader } from '../../effects/recording/tape-file.ts';
import type { Redactor } from '../../effects/redact/redact.ts';
import { parseSessionFile } from '../../engine/recording/decode.ts';
import { withShownOutputs } from '../../engine/recording/encode.ts';
import { setTextsApart } from '../../engine/recording/long-texts.ts';
import {
  formatRecording,
  type Recording as RecordedActivity,
  sessionFileName,
} from '../../engine/recording/session-file.ts';
import { packDelta } from '../../git/delta/pack.ts';
import { patchOf } from '../../git/delta/patch.ts';
import { isSameBase, isSameStashes, type WorktreeState } from '../../git/delta/state.ts';
import type { Repository } from '../../git/repository.ts';
import { sha256, toCaseFiles } from './case-files.ts';

export interface Distillation {
  readonly case: string;
  readonly recording: Recording;
  /** What sessions and scripts did, with the names of their tasks in the case. */
  readonly activities: readonly RecordedActivity[];
  /** Where the objects of git are that the states of their folders name, and the repository may not have. */
  readonly objectsDir: string;
  readonly repository: Repository | undefined;
  /** The commit that whoever replays the case begins with. */
  readonly base: string;
  readonly redactor: Redactor;
  readonly made: Omit<TapeHeader, 'case' | 'step'>;
  readonly main: ScoreHeader['main'];
  readonly steps: readonly string[];
  /** Other files of the recording that are written already, by path in the case. */
  readonly files?: Readonly<Record<string, string>> | undefined;
}

/** Makes the files of a case from what was written down while it happened: tapes, score, sessions and packs. */
export async function distil(request: Distillation, target: string): Promise<void> {
  const hashes: Record<string, string> = { ...request.files };
  const write = (name: string, content: string | Uint8Array) => {
    const file = join(target, name);
    mkdirSync(join(file, '..'), { recursive: true });
    writeFileSync(file, content);
    if (!name.endsWith('.vcr') && !name.endsWith('.score')) hashes[name] = sha256(content);
  };
  const writeSession = (name: string, activity: RecordedActivity) => {
    const { text, blob } = setTextsApart(formatRecording(withShownOutputs(activity), request.redactor));
    write(name, text);
    if (blob) write(`blobs/${blob.sha}`, blob.content);
  };
  for (const activity of request.activities) {
    const name = `sessions/${sessionFileName(activity)}`;
    const { before, after } = activity;
    const changed = before !== null && after !== null && !isSame(before, after);
    if (!changed || !request.repository) {
      writeSession(name, activity);
      continue;
    }
    const where = { repository: request.repository, objectsDir: request.objectsDir };
    const pack = await packDelta({ ...where, base: request.base, before, after });
    const sha = sha256(pack);
    write(`blobs/${sha}`, pack);
    writeSession(name, { ...activity, pack: sha });
    write(name.replace(/\.jsonl$/, '.patch'), await patchOf({ ...where, before, after }));
  }
  const { recording, made, main, steps } = request;
  const files = toCaseFiles({ case: request.case, recording, made, main, steps, files: hashes });
  for (const [name, text] of Object.entries(files)) write(name, text);
}

/** The sessions and scripts of which the files are in a journal. Throws TAPE_INVALID. */
export function readActivities(journal: string): readonly RecordedActivity[] {
  const folder = join(journal, 'sessions');
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter(file => file.endsWith('.jsonl'))
    .sort()
    .map(file => parseSessionFile(file, readFileSync(join(folder, file), 'utf8')))
    .filter(parsed => parsed.kind !== 'written');
}

const isSame = (before: WorktreeState, after: WorktreeState): boolean =>
  isSameBase(before, after) &&
  before.head.branch === after.head.branch &&
  isSameStashes(before.stashes, after.stashes) &&
  JSON.stringify([before.refs, before.emptyFolders]) === JSON.stringify([after.refs, after.emptyFolders]);
