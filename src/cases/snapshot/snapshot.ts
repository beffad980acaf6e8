import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { shellWord } from '../../terminal/words.ts';
import type { CaseFailure } from '../result.ts';
import { compareSnapshot } from './diff.ts';

/** `check` compares and leaves the new one beside it, `accept` takes it over, `ci` compares and writes nothing. */
export type SnapshotMode = 'check' | 'accept' | 'ci';

export interface SnapshotCheck {
  /** Where the snapshot is, or should be. */
  readonly file: string;
  readonly actual: string;
  readonly mode: SnapshotMode;
  /** As it is typed after `reprise test`; the name of the file unless it is given. */
  readonly caseName?: string | undefined;
  /** The file as messages call it; the file itself unless it is given. */
  readonly displayFile?: string | undefined;
}

export type SnapshotVerdict =
  | { readonly kind: 'equal' }
  | { readonly kind: 'accepted'; readonly before: 'missing' | 'different' }
  | { readonly kind: 'failed'; readonly failure: CaseFailure };

/** Compares a snapshot with the one on disk. */
export async function checkSnapshot(check: SnapshotCheck): Promise<SnapshotVerdict> {
  const { file, actual, mode } = check;
  const fresh = `${file}.new`;
  const expected = await readIfThere(file);
  const comparison = expected === undefined ? undefined : compareSnapshot({ expected, actual });
  if (comparison?.equal) {
    if (mode !== 'ci') await rm(fresh, { force: true });
    return { kind: 'equal' };
  }
  if (mode !== 'ci') await writeFile(fresh, actual);
  if (mode === 'accept') {
    await rename(fresh, file);
    return { kind: 'accepted', before: comparison ? 'different' : 'missing' };
  }
  return { kind: 'failed', failure: comparison ? differs(check, comparison) : isMissing(check) };
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

const differs = (
  check: SnapshotCheck,
  { diff, removed, added }: { readonly diff: string; readonly removed: number; readonly added: number },
): CaseFailure => ({
  kind: 'snapshot',
  message: `the snapshot differs: -${removed} +${added} lines`,
  diff,
  file: nameOf(check),
  line: firstLineOf(diff),
  hint: `if the new one is right: ${acceptCommand(check)}${whereItIs(check)}`,
});

const isMissing = (check: SnapshotCheck): CaseFailure => ({
  kind: 'snapshot',
  message: `there is no snapshot ${nameOf(check)} yet`,
  file: nameOf(check),
  hint: `look at what it would be and take it: ${acceptCommand(check)}${whereItIs(check)}`,
});

const nameOf = ({ file, displayFile = file }: SnapshotCheck): string => displayFile;

const acceptCommand = ({ file, caseName = basename(file).replace(/\.snap$/, '') }: SnapshotCheck): string =>
  `reprise test ${shellWord(caseName)} --accept`;

const whereItIs = (check: SnapshotCheck): string =>
  check.mode === 'ci' ? '\nand commit it: in CI nothing is written' : `\nthe new one: ${nameOf(check)}.new`;

/** Where in the snapshot the first difference is. */
function firstLineOf(diff: string): number {
  const [head = '', ...lines] = diff.split('\n');
  const start = Number(/^@@ -(\d+)/.exec(head)?.[1] ?? 1);
  const same = lines.findIndex(line => !line.startsWith(' ') && line !== '');
  return Math.max(1, start + Math.max(0, same));
}
