export type { RunCommandOptions } from './run.ts';
