import type { WorkflowModel } from '../model.ts';
import type { Path, YamlSource } from './source/yaml-source.ts';

/** A workflow that was read, with a hash over what it is to whoever uses it. */
export interface LoadedWorkflow {
  readonly model: WorkflowModel;
  readonly fingerprint: string;
}

/** Loads what a `uses` at a path of a file names. Problems are reported; with any, there is no result. */
export type ChildLoader = (reference: string, source: YamlSource, path: Path) => LoadedWorkflow | undefined;
