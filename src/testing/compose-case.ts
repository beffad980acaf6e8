import type { CaseManifest } from '../cases/manifest/manifest.ts';
import { isGitReal } from '../cases/perform/failures.ts';
import type { PlayedStep } from '../cases/perform/perform.ts';
import type { Stage } from '../cases/perform/stage.ts';
import type { ConductedWorld } from '../effects/conductor/conductor.ts';
import type { RecordedEntry } from '../effects/recording/recording.ts';
import { stagePaths } from './paths.ts';
import { composeSnapshot, type SnapshotResult } from './snapshot/compose.ts';
import { normaliseSnapshot } from './snapshot/normalise.ts';
import { stageHistory, stageResult } from './stage-result.ts';

interface ComposedCase {
  readonly manifest: CaseManifest;
  readonly played: readonly PlayedStep[];
  readonly entries: readonly RecordedEntry[];
}

/** The snapshot of a case that was played. */
export async function composeCase(
  stage: Stage,
  { manifest, played, entries }: ComposedCase,
): Promise<string> {
  const runIds = runIdsOf(entries);
  const history = await stageHistory(stage);
  const main = manifest.base?.branch ?? 'main';
  const result = isGitReal(manifest) ? await stageResult(stage, { main, history }) : undefined;
  const text = composeSnapshot({
    steps: played.map(({ step, output, end }) => ({
      name: step.name,
      output,
      exitCode: end.kind === 'exited' ? end.code : null,
      killed: end.kind === 'killed',
    })),
    result: result && inOrderOfRuns(result, { played, runIds }),
    timeline: manifest.timeline ? entries : undefined,
  });
  const shas = [...history.commits.keys()];
  return normaliseSnapshot(text, { paths: stagePaths(stage), shas, runIds });
}

/** Run ids are random: what is named after them is sorted by the place at which the steps mention the run. */
function inOrderOfRuns(
  result: SnapshotResult,
  { played, runIds }: { readonly played: readonly PlayedStep[]; readonly runIds: readonly string[] },
): SnapshotResult {
  const outputs = played.map(({ output }) => output).join('\n');
  const mentioned = runIds.toSorted((a, b) => outputs.indexOf(a) - outputs.indexOf(b));
  const sortable = (name: string) =>
    mentioned.reduce((text, id, index) => text.replaceAll(id, String(index).padStart(6, '0')), name);
  const sorted = (names: readonly string[]) => names.toSorted((a, b) => (sortable(a) < sortable(b) ? -1 : 1));
  return { ...result, worktrees: sorted(result.worktrees), branches: sorted(result.branches) };
}

const runIdsOf = (entries: readonly RecordedEntry[]): readonly string[] =>
  entries.flatMap(({ op, outcome }) =>
    op === 'ids.new' && outcome?.kind === 'ok'
      ? ((outcome.value as { readonly runId?: string }).runId ?? [])
      : [],
  );

/** Whoever waits for steps is not to wait for a performance that was broken off. */
export const orStopped = <T>(played: Promise<T>, { stopped }: Pick<ConductedWorld, 'stopped'>): Promise<T> =>
  Promise.race([
    played,
    stopped.then(error => {
      throw error;
    }),
  ]);
