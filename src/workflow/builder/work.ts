import type { ArtifactRule, WorkRules, WorkspaceBase } from '../model.ts';
import { artifactName, objectToArtifactPath } from '../problems.ts';
import type { WorkPlace } from '../workspace-rules.ts';
import { type CommandMaker, commandsOf } from './commands.ts';
import { type After, type Dependency, type ItemSelect, toItemSelector } from './handle.ts';
import type { OptionReader } from './rules.ts';

/** What surrounds the work of a script or an agent. */
export interface WorkspaceOptions<A extends After, Input, Item> {
  /**
   * In a git worktree of its own, in one that must not change, or in the folder of the project. Agents and copies of a
   * step work in a worktree by default, and so do scripts that come after exactly one such work.
   */
  readonly workspace?: 'worktree' | 'readonly' | 'none' | WorkspaceSettings<A, Input, Item> | undefined;
  /** Commands that prepare a new workspace. */
  readonly setup?: readonly string[] | undefined;
  /** Commands that must pass before the work counts. */
  readonly checks?: readonly string[] | undefined;
  /** Commands that run after the work, however it ended. */
  readonly teardown?: readonly string[] | undefined;
  /** Files of the workspace that are kept, by name, or each under the name of its file. */
  readonly artifacts?: readonly string[] | Readonly<Record<string, string>> | undefined;
}

export interface WorkspaceSettings<A extends After, Input, Item> {
  /** Where it begins: the id of a step that it comes after, or a commit or branch. */
  readonly base?: string | ItemSelect<A, Input, Item, string> | undefined;
  /** The name of its branch; one of the run by default. */
  readonly branch?: string | ItemSelect<A, Input, Item, string> | undefined;
  readonly readonly?: boolean | undefined;
}

/** Whatever the dependencies are. */
export type AnyWorkspace = WorkspaceOptions<never, never, never>;

type Place = Extract<WorkPlace, { kind: 'workspace' }>;

interface Kind {
  readonly kind: 'run' | 'agent';
  readonly isMany: boolean;
}

const inherited: Place = { kind: 'workspace', mode: 'inherited' };

/** Where the step works, as far as it says so itself. */
export function placeOf(options: AnyWorkspace, { kind, isMany }: Kind): Place {
  const { workspace, setup, checks, teardown, artifacts } = options;
  if (workspace === undefined) {
    const hasRules = [setup, checks, teardown, artifacts].some(rule => rule !== undefined);
    if (kind === 'run' && !isMany && !hasRules) return inherited;
    return { kind: 'workspace', mode: 'worktree' };
  }
  if (typeof workspace === 'string') return { kind: 'workspace', mode: workspace };
  const { base, readonly } = workspace;
  return {
    kind: 'workspace',
    mode: readonly ? 'readonly' : 'worktree',
    ...(typeof base === 'function' ? { hasComputedBase: true } : { base }),
  };
}

interface WorkParts extends Kind {
  readonly dependencies: readonly Dependency[];
  readonly command: CommandMaker;
}

/** `undefined` for a script that says nothing about where it works. */
export function readWork(options: AnyWorkspace, parts: WorkParts): WorkRules | undefined {
  const { mode } = placeOf(options, parts);
  if (mode === 'inherited') return undefined;
  const { dependencies, command } = parts;
  const { base, branch } = typeof options.workspace === 'object' ? options.workspace : {};
  const begin: WorkspaceBase =
    typeof base === 'function' ? { kind: 'ref', name: toItemSelector(dependencies, base) } : { kind: 'run' };
  return {
    workspace:
      mode === 'none'
        ? { kind: 'none' }
        : {
            kind: 'worktree',
            readonly: mode === 'readonly',
            base: begin,
            branch: branch === undefined ? undefined : toItemSelector(dependencies, branch),
          },
    setup: commandsOf(options.setup, command),
    teardown: commandsOf(options.teardown, command),
    checks: commandsOf(options.checks, command),
    artifacts: artifactsOf(options.artifacts),
  };
}

function artifactsOf(artifacts: AnyWorkspace['artifacts'] = []): readonly ArtifactRule[] {
  if (isList(artifacts)) return artifacts.map(path => ({ name: artifactName(path), path }));
  return Object.entries(artifacts).map(([name, path]) => ({ name, path }));
}

const isList = (value: readonly string[] | Readonly<Record<string, string>>): value is readonly string[] =>
  Array.isArray(value);

const modes: readonly unknown[] = ['worktree', 'readonly', 'none'];

/** Reports what cannot be. */
export function checkWork(options: AnyWorkspace, isMany: boolean, reader: OptionReader): void {
  const { workspace } = options;
  if (typeof workspace === 'string' && !modes.includes(workspace))
    reader.problem(`workspace is ${JSON.stringify(workspace)}`, `one of ${modes.join(', ')}, or an object`);
  if (isMany && typeof workspace === 'object' && typeof workspace.branch === 'string')
    reader.problem(
      'all copies of this step would have the same branch',
      'make `branch` a function of the item',
    );
  for (const option of ['setup', 'checks', 'teardown'] as const) {
    const commands: unknown = options[option];
    if (commands !== undefined && !isTexts(commands))
      reader.problem(`\`${option}\` is not a list of commands`);
  }
  const names = new Set<string>();
  for (const { name, path } of artifactsOf(options.artifacts)) {
    const objection = objectToArtifactPath(path);
    if (objection) reader.problem(`the artifact ${JSON.stringify(path)} ${objection}`);
    else if (names.has(name)) reader.problem(`two artifacts are called "${name}"`, 'give them names');
    names.add(name);
  }
}

const isTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.every(item => typeof item === 'string' && item.trim() !== '');
