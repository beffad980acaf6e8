import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileLimits, readRecordedText } from '../../effects/index.ts';
import type { Recording, ScoreHeader, TapeHeader } from '../../effects/recording/index.ts';
import type { Redactor } from '../../effects/redact/index.ts';
import {
  formatRecording,
  parseSessionFile,
  type RecordedActivity,
  sessionFileName,
  setTextsApart,
  withShownOutputs,
} from '../../engine/recording/index.ts';
import { isSameBase, isSameStashes, packDelta, patchOf, type WorktreeState } from '../../git/delta/index.ts';
import type { Repository } from '../../git/index.ts';
import { sha256, toCaseFiles } from './case-files.ts';

export interface Distillation {
  readonly case: string;
  readonly recording: Recording;
  /** Sessions and scripts, with the task names that they have in the case. */
  readonly activities: readonly RecordedActivity[];
  /** Folder of the git objects of the recorded worktree states. The repository may lack them. */
  readonly objectsDir: string;
  readonly repository: Repository | undefined;
  /** Commit that a replay of the case starts from. */
  readonly base: string;
  readonly redactor: Redactor;
  readonly made: Omit<TapeHeader, 'case' | 'step'>;
  readonly main: ScoreHeader['main'];
  readonly steps: readonly string[];
  /** SHA-256 of files of the recording that already exist, by path in the case folder. */
  readonly files?: Readonly<Record<string, string>> | undefined;
}

/** Writes the recording of a case from a journal: tapes, score, sessions and packs. */
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

/** Reads the sessions and scripts of a journal. Throws TAPE_INVALID. */
export function readActivities(journal: string): readonly RecordedActivity[] {
  const folder = join(journal, 'sessions');
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter(file => file.endsWith('.jsonl'))
    .sort()
    .map(file =>
      parseSessionFile(file, readRecordedText({ file: join(folder, file), maxBytes: fileLimits.journal })),
    )
    .filter(parsed => parsed.kind !== 'written');
}

const isSame = (before: WorktreeState, after: WorktreeState): boolean =>
  isSameBase(before, after) &&
  before.head.branch === after.head.branch &&
  isSameStashes(before.stashes, after.stashes) &&
  JSON.stringify([before.refs, before.emptyFolders]) === JSON.stringify([after.refs, after.emptyFolders]);
