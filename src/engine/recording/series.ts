import { readdirSync } from 'node:fs';
import { type RecordingId, seriesName } from './session-file.ts';

/** What has been recorded of one role and task. */
interface Series {
  opened: number;
  results: number;
  /** By the number that they would have had. */
  readonly cuts: Map<number, number>;
}

/** Numbers for recordings: a number is used up by a result, and not by a beginning. */
export class SeriesNumbers {
  readonly #folder: string;
  #series: Map<string, Series> | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  open(of: Pick<RecordingId, 'role' | 'task'>): Required<RecordingId> & { readonly order: number } {
    const series = this.#of(of);
    const n = series.results;
    const cut = series.cuts.get(n) ?? 0;
    series.cuts.set(n, cut + 1);
    return { role: of.role, task: of.task, n, cut, order: series.opened++ };
  }

  /** The number of a result. */
  reached(of: Pick<RecordingId, 'role' | 'task'>): number {
    return this.#of(of).results++;
  }

  #of(of: Pick<RecordingId, 'role' | 'task'>): Series {
    this.#series ??= seriesIn(this.#folder);
    const name = seriesName(of);
    const series = this.#series.get(name) ?? newSeries();
    this.#series.set(name, series);
    return series;
  }
}

const newSeries = (): Series => ({ opened: 0, results: 0, cuts: new Map() });

/** A run that is resumed goes on with the recordings that are there. */
function seriesIn(folder: string): Map<string, Series> {
  const found = new Map<string, Series>();
  for (const file of namesIn(folder)) {
    const [, name, number, cut] = /^(.+)\.(\d+)(?:\.cut(\d+))?\.jsonl$/.exec(file) ?? [];
    if (name === undefined) continue;
    const series = found.get(name) ?? newSeries();
    found.set(name, series);
    const n = Number(number);
    series.opened++;
    if (cut === undefined) series.results = Math.max(series.results, n + 1);
    else series.cuts.set(n, Math.max(series.cuts.get(n) ?? 0, Number(cut) + 1));
  }
  return found;
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
