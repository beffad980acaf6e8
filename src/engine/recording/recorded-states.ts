import { fitting, type PlacedLine } from '../../effects/recording/index.ts';
import type { WorktreeState } from '../../git/delta/index.ts';
import { changedStateSchema, numberSchema, sha256Schema, stateSchema } from './schemas.ts';

/** The folder states in a recording, and all its other lines. */
export interface StateLines {
  readonly before: WorktreeState | null;
  readonly after: WorktreeState | null;
  readonly pack?: string | undefined;
  readonly incomplete?: string | undefined;
  /** Number of the result, if it differs from the one in the header. */
  readonly n?: number;
  readonly rest: readonly PlacedLine[];
}

export function takeStates(lines: readonly PlacedLine[]): StateLines {
  let before: WorktreeState | null = null;
  let after: WorktreeState | null = null;
  let pack: string | undefined;
  let incomplete: string | undefined;
  let n: number | undefined;
  const rest: PlacedLine[] = [];
  for (const line of lines) {
    const { value } = line;
    if ('before' in value) before = stateIn(value['before'], line);
    if ('after' in value) {
      after = afterIn(value['after'], { line, before });
      if (value['pack'] !== undefined) pack = fitting(sha256Schema, value['pack'], line);
    } else if ('incomplete' in value) incomplete = String(value['incomplete']);
    else if ('n' in value) n = fitting(numberSchema, value['n'], line);
    else if (!('before' in value)) rest.push(line);
  }
  return {
    before,
    after,
    rest,
    ...(n === undefined ? {} : { n }),
    ...(pack === undefined ? {} : { pack }),
    ...(incomplete === undefined ? {} : { incomplete }),
  };
}

/** Parts that are not given are unchanged. */
function afterIn(
  value: unknown,
  { line, before }: { readonly line: PlacedLine; readonly before: WorktreeState | null },
): WorktreeState | null {
  if (value === 'same') return before;
  if (value === null || before === null) return stateIn(value, line);
  return { ...before, ...fitting(changedStateSchema, value, line) } as WorktreeState;
}

const stateIn = (value: unknown, place: PlacedLine): WorktreeState | null =>
  value === null ? null : fitting(stateSchema, value, place);
