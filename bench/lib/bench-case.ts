import type { Target } from './targets.ts';

interface BenchOptions {
  /** Whether LangGraph is installed and can be compared. */
  readonly peer: boolean;
  readonly rounds: number;
}

/** A section of the results. */
interface BenchResult {
  readonly title: string;
  /** Markdown, usually a table. */
  readonly body: string;
  /** Paragraphs after the body. */
  readonly notes?: readonly string[];
  readonly targets: readonly Target[];
}

/** Runs the contenders of one comparison, and describes the figures. */
export type BenchCase = (options: BenchOptions) => BenchResult;
