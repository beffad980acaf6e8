import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { toErrorData } from '../../core/errors.ts';
import type { Recording } from '../../engine/recording/session-file.ts';
import { applyDelta } from '../../git/delta/apply.ts';
import type { Repository } from '../../git/repository.ts';

/** What came of doing to a folder what was done to it when it was recorded. */
export interface AppliedMark {
  readonly file: string;
  readonly kind: 'exact' | 'counterfactual' | 'inconclusive';
  readonly why?: string | undefined;
}

/** Does to a folder what a recording did to its own, and says how that fared. */
export type ApplyRecorded = (
  recording: Recording,
  folder: string,
) => Omit<AppliedMark, 'file'> | Promise<Omit<AppliedMark, 'file'>>;

export interface DeltaOptions {
  /** `undefined` if the project is in no repository. */
  readonly repository: () => Promise<Repository | undefined>;
  readonly blobs: (sha256: string) => Uint8Array | Promise<Uint8Array>;
  readonly applyDeltas: boolean;
  /** Where folders are not those of this machine. */
  readonly applyInstead?: ApplyRecorded | undefined;
}

/** Does to folders what recorded sessions and scripts did to theirs. */
export class Deltas {
  readonly #options: DeltaOptions;
  readonly marks: AppliedMark[] = [];

  constructor(options: DeltaOptions) {
    this.#options = options;
  }

  /** Never rejects: what could not be done is a mark. */
  async apply(recording: Recording, folder: string): Promise<void> {
    const { file, before, after } = recording;
    if (!this.#options.applyDeltas || !before || !after || isDeepStrictEqual(before, after)) return;
    const apply = this.#options.applyInstead ?? applyOnDisk(this.#options);
    try {
      this.marks.push({ file, ...(await apply(recording, folder)) });
    } catch (error) {
      this.marks.push({ file, kind: 'inconclusive', why: toErrorData(error).message });
    }
  }
}

const applyOnDisk =
  ({ repository: open, blobs }: DeltaOptions): ApplyRecorded =>
  async ({ before, after, pack: name }, folder) => {
    if (!before || !after) throw new Error('nobody looked at what it did');
    const repository = await open();
    if (!repository) throw new Error('the project is in no git repository');
    const pack = name === undefined ? emptyPack : await blobs(name);
    const applied = await applyDelta({ repository, folder: worktreeOf(folder), before, after, pack });
    return { kind: applied.kind, ...(applied.kind === 'inconclusive' ? { why: applied.why } : {}) };
  };

/** All that it needs is in the repository already. */
const emptyPack: Uint8Array = Buffer.from('PACK\0\0\0\x02\0\0\0\0', 'latin1');

/** The top of the worktree that a folder is in: scripts may run below it. */
function worktreeOf(folder: string): string {
  for (let at = folder; ; at = dirname(at)) {
    if (existsSync(join(at, '.git'))) return at;
    if (at === dirname(at)) return folder;
  }
}
