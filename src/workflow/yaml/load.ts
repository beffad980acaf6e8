import { nearest } from '../../core/suggest.ts';
import type { WorkflowModel } from '../model.ts';
import { DefinitionError } from '../problems.ts';
import type { PromptReader } from './compile/agent.ts';
import { compileWorkflow } from './compile/workflow.ts';
import { isGitHubAction } from './shape.ts';
import { ProblemList } from './source/problem-list.ts';
import { type Path, YamlSource } from './source/yaml-source.ts';

/** A workflow that was read, with a hash over what it is to whoever uses it. */
export interface LoadedWorkflow {
  readonly model: WorkflowModel;
  readonly fingerprint: string;
}

/** Loads what a `uses` at a path of a file names. Problems are reported; with any, there is no result. */
export type ChildLoader = (reference: string, source: YamlSource, path: Path) => LoadedWorkflow | undefined;

/** A workflow file that the caller has read. */
export interface WorkflowText {
  /** Absolute path. */
  readonly file: string;
  /** The path as people see it; `file` unless given. */
  readonly displayFile?: string | undefined;
  readonly text: string;
}

interface LoadOptions extends WorkflowText {
  /** Finds what a `uses:` names: a path relative to `fromFile` (`./child.yaml`), or the name of a workflow. */
  readonly resolve?: ((reference: string, fromFile: string) => WorkflowText | undefined) | undefined;
  /** Finds what a `prompt: { file }` names: a path relative to `fromFile`. */
  readonly readPrompt?: PromptReader | undefined;
  /** The names that `resolve` knows, for suggestions. */
  readonly known?: (() => Iterable<string>) | undefined;
}

/**
 * Reads a workflow and all that it uses. Pure: the caller reads the files.
 * Throws DefinitionError with every problem of every file, in the order of the files, and nothing else.
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
  /** The files that are being read, each used by the one before. */
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
        'actions of GitHub cannot be used',
        'run the command that it stands for with `run`',
      );
    }
    if (reference.includes('${{'))
      return this.#refuse(source, path, '`uses` must name a workflow, not compute it');
    const child = this.#options.resolve?.(reference, source.file);
    if (!child)
      return this.#refuse(source, path, `there is no workflow \`${reference}\``, this.#suggest(reference));
    const index = this.#open.findIndex(({ file }) => file === child.file);
    if (index !== -1) {
      const circle = [...this.#open.slice(index), this.#open[index]].map(open => open?.displayFile ?? '');
      return this.#refuse(source, path, `a workflow cannot use itself: ${circle.join(' -> ')}`);
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
    return isPath ? 'the path counts from the folder of this file' : 'a path begins with `./`';
  }
}
