import { artifactName, objectToArtifactPath } from '../../artifact-path.ts';
import type { ArtifactRule, WorkRules, WorkspaceRule } from '../../model.ts';
import type { WorkPlace } from '../../workspace-rules.ts';
import { compileCommands } from '../command.ts';
import type { StepDefinition } from '../schema.ts';
import type { BodySite } from '../site.ts';
import { compileText, isConstant } from './expressions.ts';

interface WorkOptions {
  readonly kind: 'run' | 'agent';
  readonly fansOut: boolean;
}

interface CompiledWork {
  /** `undefined` for a script that says nothing about where it works. */
  readonly rules: WorkRules | undefined;
  readonly place: WorkPlace;
}

type Mode = Extract<WorkPlace, { kind: 'workspace' }>['mode'];

/** What surrounds the work of a script or an agent. Where its workspace begins is decided with all steps at hand. */
export function compileWork(definition: StepDefinition, site: BodySite, options: WorkOptions): CompiledWork {
  const { path } = site;
  const { shell } = definition;
  const mode = modeOf(definition, options);
  const commands = (key: 'setup' | 'teardown' | 'checks') =>
    compileCommands(definition[key], [...path, key], site, { shell });
  const rest = {
    setup: commands('setup'),
    teardown: commands('teardown'),
    checks: commands('checks'),
    artifacts: artifactsOf(definition.artifacts, site),
  };
  if (mode === 'inherited') return { rules: undefined, place: { kind: 'workspace', mode } };
  const { workspace, place } = compileWorkspace(definition, site, { mode, fansOut: options.fansOut });
  return { rules: { workspace, ...rest }, place };
}

function modeOf(definition: StepDefinition, { kind, fansOut }: WorkOptions): Mode {
  const { workspace } = definition;
  if (typeof workspace === 'string') return workspace;
  if (workspace !== undefined) return workspace.readonly ? 'readonly' : 'worktree';
  const { setup, teardown, checks, artifacts } = definition;
  const hasRules = [setup, teardown, checks, artifacts].some(rule => rule !== undefined);
  return kind === 'agent' || fansOut || hasRules ? 'worktree' : 'inherited';
}

interface WorkspaceOptions {
  readonly mode: Exclude<Mode, 'inherited'>;
  readonly fansOut: boolean;
}

function compileWorkspace(
  { workspace: written }: StepDefinition,
  site: BodySite,
  { mode, fansOut }: WorkspaceOptions,
): { readonly workspace: WorkspaceRule; readonly place: WorkPlace } {
  if (mode === 'none') return { workspace: { kind: 'none' }, place: { kind: 'workspace', mode } };
  const { base, branch } = typeof written === 'object' ? written : {};
  const path = [...site.path, 'workspace'];
  const text = (key: 'base' | 'branch', template: string) => {
    const compiled = compileText(template, [...path, key], site);
    return (scope: Parameters<BodySite['surroundings']>[0]) => compiled(site.surroundings(scope));
  };
  if (fansOut && branch !== undefined && !/\bmatrix\b/.test(branch)) {
    site.problems.add(site.source, {
      path: [...path, 'branch'],
      message: 'all copies of this step would have the same branch',
      hint: 'leave it out, or let it depend on the matrix: `${{ matrix.<key> }}`',
    });
  }
  const isComputed = base !== undefined && !isConstant(base);
  return {
    workspace: {
      kind: 'worktree',
      readonly: mode === 'readonly',
      base: isComputed ? { kind: 'ref', name: text('base', base) } : { kind: 'run' },
      ...(branch === undefined ? {} : { branch: text('branch', branch) }),
    },
    place: {
      kind: 'workspace',
      mode,
      ...(isComputed ? { hasComputedBase: true } : base === undefined ? {} : { base }),
    },
  };
}

const noNames: ReadonlySet<string> = new Set();

export function namesOfArtifacts(written: StepDefinition['artifacts']): ReadonlySet<string> {
  if (written === undefined) return noNames;
  return new Set(Array.isArray(written) ? written.map(artifactName) : Object.keys(written));
}

function artifactsOf(written: StepDefinition['artifacts'], site: BodySite): readonly ArtifactRule[] {
  if (written === undefined) return [];
  const path = [...site.path, 'artifacts'];
  const rules = Array.isArray(written)
    ? written.map((file: string, index) => ({ name: artifactName(file), path: file, at: [...path, index] }))
    : Object.entries(written).map(([name, file]) => ({ name, path: file, at: [...path, name] }));
  const names = new Set<string>();
  for (const { name, path: file, at } of rules) {
    const objection = objectToArtifactPath(file);
    if (objection) site.problems.add(site.source, { path: at, message: `an artifact ${objection}` });
    else if (names.has(name)) {
      const hint = 'give them names: `artifacts: { first: a/report.md, second: b/report.md }`';
      site.problems.add(site.source, { path: at, message: `two artifacts are called \`${name}\``, hint });
    }
    names.add(name);
  }
  return rules.map(({ name, path: file }) => ({ name, path: file }));
}
