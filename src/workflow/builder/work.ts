import type { ArtifactRule, WorkRules, WorkspaceBase } from '../model.ts';
import { artifactName, objectToArtifactPath } from '../problems.ts';
import type { WorkPlace } from '../workspace-rules.ts';
import { type After, type Dependency, type ItemSelect, toItemSelector } from './handle.ts';
import { type CommandMaker, commandsOf, type OptionReader } from './rules.ts';

/** Options for the workspace of a script or an agent, and the commands that run around it. */
export interface WorkspaceOptions<A extends After, Input, Item> {
  /**
   * Folder that the step works in: its own git worktree, a worktree that must not change, or the folder of the project.
   * Defaults to a worktree for agents, for copies, and for scripts that build on exactly one earlier workspace.
   */
  readonly workspace?: 'worktree' | 'readonly' | 'none' | WorkspaceSettings<A, Input, Item> | undefined;
  /** Commands that prepare a new workspace. */
  readonly setup?: readonly string[] | undefined;
  /** Commands that must pass for the step to succeed. */
  readonly checks?: readonly string[] | undefined;
  /** Commands that run after the work, even if it failed. */
  readonly teardown?: readonly string[] | undefined;
  /** Files of the workspace to keep. An artifact in a list is named after its file. */
  readonly artifacts?: readonly string[] | Readonly<Record<string, string>> | undefined;
}

export interface WorkspaceSettings<A extends After, Input, Item> {
  /** Starting point: the id of an earlier step, or a commit or branch. */
  readonly base?: string | ItemSelect<A, Input, Item, string> | undefined;
  /** Name of the branch. Defaults to a generated name. */
  readonly branch?: string | ItemSelect<A, Input, Item, string> | undefined;
  readonly readonly?: boolean | undefined;
}

/** Workspace options with any dependencies. */
export type AnyWorkspace = WorkspaceOptions<never, never, never>;

type OwnWorkspace = Extract<WorkPlace, { kind: 'workspace' }>;

interface WorkKind {
  readonly kind: 'run' | 'agent';
  readonly isMany: boolean;
}

const inherited: OwnWorkspace = { kind: 'workspace', mode: 'inherited' };

/** Returns the part of the workspace that the step itself determines. */
export function placeOf(options: AnyWorkspace, { kind, isMany }: WorkKind): OwnWorkspace {
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

interface WorkParts extends WorkKind {
  readonly dependencies: readonly Dependency[];
  readonly command: CommandMaker;
}

/** Returns `undefined` for a script that does not set a workspace. */
export function readWork(options: AnyWorkspace, parts: WorkParts): WorkRules | undefined {
  const { mode } = placeOf(options, parts);
  if (mode === 'inherited') return undefined;
  const { dependencies, command } = parts;
  const { base, branch } = typeof options.workspace === 'object' ? options.workspace : {};
  const start: WorkspaceBase =
    typeof base === 'function' ? { kind: 'ref', name: toItemSelector(dependencies, base) } : { kind: 'run' };
  return {
    workspace:
      mode === 'none'
        ? { kind: 'none' }
        : {
            kind: 'worktree',
            readonly: mode === 'readonly',
            base: start,
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

/** Reports invalid options. */
export function checkWork(options: AnyWorkspace, isMany: boolean, reader: OptionReader): void {
  const { workspace } = options;
  if (typeof workspace === 'string' && !modes.includes(workspace))
    reader.problem(`workspace must be ${modes.join(', ')} or an object, not ${JSON.stringify(workspace)}`);
  if (isMany && typeof workspace === 'object' && typeof workspace.branch === 'string')
    reader.problem(
      'all copies of this step would use the same branch',
      'make `branch` a function of the item',
    );
  for (const option of ['setup', 'checks', 'teardown'] as const) {
    const commands: unknown = options[option];
    if (commands !== undefined && !isTexts(commands))
      reader.problem(`\`${option}\` must be a list of commands`);
  }
  const names = new Set<string>();
  for (const { name, path } of artifactsOf(options.artifacts)) {
    const objection = objectToArtifactPath(path);
    if (objection) reader.problem(`the path ${JSON.stringify(path)} of an artifact ${objection}`);
    else if (names.has(name))
      reader.problem(`duplicate artifact name "${name}"`, 'name them: artifacts: { first: "a/report.md" }');
    names.add(name);
  }
}

const isTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.every(item => typeof item === 'string' && item.trim() !== '');
