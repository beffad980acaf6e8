import type { WorkerRecord } from '../store/runs.ts';
import type { WorkerEffects } from './effects/index.ts';
import type { WorkerRules } from './rules.ts';

/** What a worker does at the moment. */
export type Doing = Pick<WorkerRecord, 'state' | 'task' | 'agent' | 'runId' | 'note'>;

/** A worker, as the steps of its iterations know it. */
export interface Self {
  readonly effects: WorkerEffects;
  readonly rules: WorkerRules;
  /** Whether it may wait for a person: it is to go on until it is told to stop. */
  readonly canWait: boolean;
  /** Tells others what it does now. */
  show(doing: Doing): Promise<void>;
}
