import { nearest } from '../../core/index.ts';
import type { WorkflowModel } from '../model.ts';
import { DefinitionError } from '../problems.ts';
import type { PromptReader } from './compile/agent.ts';
import { compileWorkflow } from './compile/workflow.ts';
import { isGitHubAction } from './shape.ts';
import { ProblemList } from './source/problem-list.ts';
import { type Path, YamlSource } from './source/yaml-source.ts';

/** A loaded workflow and the fingerprint of the parts that its callers depend on. */
export interface LoadedWorkflow {
  readonly model: WorkflowModel;
  readonly fingerprint: string;
}

/** Loads the workflow that a `uses` names. Reports problems at `path`, and then returns `undefined`. */
export type ChildLoader = (reference: string, source: YamlSource, path: Path) => LoadedWorkflow | undefined;

/** Path and content of a workflow file. */
export interface WorkflowText {
  /** Absolute path. */
  readonly file: string;
  /** Path to show in messages. Defaults to `file`. */
  readonly displayFile?: string | undefined;
  readonly text: string;
}

interface LoadOptions extends WorkflowText {
  /** Finds the target of a `uses:`, which is a path relative to `fromFile` (`./child.yaml`) or a workflow name. */
  readonly resolve?: ((reference: string, fromFile: string) => WorkflowText | undefined) | undefined;
  /** Reads the file of a `prompt: { file }`, whose path is relative to `fromFile`. */
  readonly readPrompt?: PromptReader | undefined;
  /** Names that `resolve` can find, for suggestions. */
  readonly known?: (() => Iterable<string>) | undefined;
}

/**
 * Loads a workflow and all workflows that it uses. Pure: the caller reads the files.
 * Throws only DefinitionError, with every problem of every file in the order of the files.
 */
export function loadWorkflow(options: LoadOptions): WorkflowModel {
  const loader = new Loader(options);
  const loaded = loader.load(options);
  const problems = loader.problems.all();
  if (problems.length > 0 || !loaded) throw new DefinitionError(problems);
  return loaded.model;
}

class Loader {
  readonly problems = new ProblemList();
  readonly #options: LoadOptions;
  readonly #loaded = new Map<string, LoadedWorkflow | undefined>();
  /** Files that are being loaded. Each is used by the one before. */
  readonly #open: YamlSource[] = [];

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  load(text: WorkflowText): LoadedWorkflow | undefined {
    const source = new YamlSource(text);
    this.problems.open(source);
    this.#open.push(source);
    const loaded = compileWorkflow(source, this.problems, {
      loadChild: this.#loadChild,
      readPrompt: this.#options.readPrompt,
    });
    this.#open.pop();
    this.#loaded.set(source.file, loaded);
    return loaded;
  }

  readonly #loadChild: ChildLoader = (reference, source, path) => {
    if (isGitHubAction(reference)) {
      return this.#refuse(
        source,
        path,
        'GitHub actions are not supported',
        'run the equivalent command with `run`',
      );
    }
    if (reference.includes('${{'))
      return this.#refuse(source, path, '`uses` must be a fixed name or path and cannot contain `${{ }}`');
    const child = this.#options.resolve?.(reference, source.file);
    if (!child)
      return this.#refuse(source, path, `cannot find workflow \`${reference}\``, this.#suggest(reference));
    const index = this.#open.findIndex(({ file }) => file === child.file);
    if (index !== -1) {
      const cycle = [...this.#open.slice(index), this.#open[index]].map(open => open?.displayFile ?? '');
      return this.#refuse(source, path, `a workflow cannot use itself: ${cycle.join(' -> ')}`);
    }
    return this.#loaded.has(child.file) ? this.#loaded.get(child.file) : this.load(child);
  };

  #refuse(source: YamlSource, path: Path, message: string, hint?: string): undefined {
    this.problems.add(source, { path, message, hint });
  }

  #suggest(reference: string): string | undefined {
    const isPath = /^\.{0,2}\//.test(reference);
    const guess = nearest(reference, this.#options.known?.() ?? []);
    if (guess) return `did you mean \`${guess}\`?`;
    return isPath ? 'the path is relative to the folder of this file' : 'a path must start with `./`';
  }
}
