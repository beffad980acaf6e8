import { parseDuration } from '../../../core/index.ts';
import type {
  ArtifactRule,
  Command,
  RetryRule,
  Selector,
  ShellCommand,
  SpendingLimit,
  TimeoutRule,
  WorkRules,
  WorkspaceRule,
} from '../../model.ts';
import { artifactName, objectToArtifactPath } from '../../problems.ts';
import type { WorkPlace } from '../../workspace-rules.ts';
import type { StepDefinition } from '../schema.ts';
import { environmentText, parseShellTemplate } from '../shell/template.ts';
import type { Complaint } from '../source/problem-list.ts';
import type { Path } from '../source/yaml-source.ts';
import { type BodySite, type Compiled, compileText, isConstant, reportUnknownNames } from './expressions.ts';

interface CompileWorkOptions {
  readonly kind: 'run' | 'agent';
  readonly fansOut: boolean;
}

interface CompiledWork {
  /** `undefined` for a script that does not set a workspace. */
  readonly rules: WorkRules | undefined;
  readonly place: WorkPlace;
}

type Mode = Extract<WorkPlace, { kind: 'workspace' }>['mode'];

/** Compiles the rules for the work of a script or an agent. `placeWork` later resolves the base of the workspace. */
export function compileWork(
  definition: StepDefinition,
  site: BodySite,
  options: CompileWorkOptions,
): CompiledWork {
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

function modeOf(definition: StepDefinition, { kind, fansOut }: CompileWorkOptions): Mode {
  const { workspace } = definition;
  if (typeof workspace === 'string') return workspace;
  if (workspace !== undefined) return workspace.readonly ? 'readonly' : 'worktree';
  const { setup, teardown, checks, artifacts } = definition;
  const hasRules = [setup, teardown, checks, artifacts].some(rule => rule !== undefined);
  return kind === 'agent' || fansOut || hasRules ? 'worktree' : 'inherited';
}

interface CompileWorkspaceOptions {
  readonly mode: Exclude<Mode, 'inherited'>;
  readonly fansOut: boolean;
}

function compileWorkspace(
  { workspace: written }: StepDefinition,
  site: BodySite,
  { mode, fansOut }: CompileWorkspaceOptions,
): { readonly workspace: WorkspaceRule; readonly place: WorkPlace } {
  if (mode === 'none') return { workspace: { kind: 'none' }, place: { kind: 'workspace', mode } };
  const { base, branch } = typeof written === 'object' ? written : {};
  const path = [...site.path, 'workspace'];
  const text = (key: 'base' | 'branch', template: string) => {
    const compiled = compileText(template, [...path, key], site);
    return (scope: Parameters<BodySite['evaluationContext']>[0]) => compiled(site.evaluationContext(scope));
  };
  if (fansOut && branch !== undefined && !/\bmatrix\b/.test(branch)) {
    site.problems.add(site.source, {
      path: [...path, 'branch'],
      message: 'all copies of this step would use the same branch',
      hint: 'remove it, or make it depend on the matrix: `${{ matrix.<key> }}`',
    });
  }
  if (branch !== undefined && /^reprise(\/|$)/.test(branch)) {
    site.problems.add(site.source, {
      path: [...path, 'branch'],
      message: 'branches below `reprise/` belong to Reprise, and this one could block later runs',
      hint: 'choose another name',
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
    if (objection)
      site.problems.add(site.source, { path: at, message: `the path of an artifact ${objection}` });
    else if (names.has(name)) {
      const hint = 'name them: `artifacts: { first: a/report.md, second: b/report.md }`';
      site.problems.add(site.source, { path: at, message: `duplicate artifact name \`${name}\``, hint });
    }
    names.add(name);
  }
  return rules.map(({ name, path: file }) => ({ name, path: file }));
}

interface ScriptOptions {
  readonly shell?: ShellCommand['shell'] | undefined;
  readonly workingDirectory?: Compiled<string> | undefined;
}

/** Compiles a script. The value of every `${{ }}` is passed in the environment. */
export function compileScript(
  script: string,
  path: Path,
  site: BodySite,
  { shell = 'bash', workingDirectory }: ScriptOptions = {},
): Selector<ShellCommand> {
  if (script.includes('\0')) {
    const message = 'a script must not contain a NUL character';
    site.problems.add(site.source, { path, message, hint: 'remove it: no shell can read it' });
  }
  const template = parseShellTemplate(script, shell);
  site.problems.addFaults(site.source, path, template.faults);
  for (const { expression } of template.values) reportUnknownNames(expression, path, site);
  return scope => {
    const context = site.evaluationContext(scope);
    const values = template.values.map(
      ({ name, expression }) => [name, environmentText(expression, context)] as const,
    );
    return {
      script: template.script,
      shell,
      env: { ...site.environment(scope), ...Object.fromEntries(values) },
      ...(workingDirectory ? { workingDirectory: workingDirectory(context) } : {}),
    };
  };
}

export const compileCommand = (
  text: string,
  path: Path,
  site: BodySite,
  options?: ScriptOptions,
): Command => ({
  text,
  command: compileScript(text, path, site, options),
});

export function compileCommands(
  commands: string | readonly string[] | undefined,
  path: Path,
  site: BodySite,
  options?: ScriptOptions,
): readonly Command[] {
  if (commands === undefined) return [];
  if (typeof commands === 'string') return [compileCommand(commands, path, site, options)];
  return commands.map((text, index) => compileCommand(text, [...path, index], site, options));
}

const defaults = { initialMs: 1000, factor: 2, maxMs: 300_000 } as const;

export function compileRetry(retry: StepDefinition['retry']): RetryRule | undefined {
  if (retry === undefined) return undefined;
  if (typeof retry === 'number') return { attempts: retry, backoff: defaults };
  const { attempts, backoff, on } = retry;
  const retries: RetryRule['retries'] =
    on && (({ code, name }) => on.includes(code) || (name !== undefined && on.includes(name)));
  return { attempts, backoff: compileBackoff(backoff), ...(retries ? { retries } : {}) };
}

type Backoff = Exclude<StepDefinition['retry'], number | undefined>['backoff'];

function compileBackoff(backoff: Backoff): RetryRule['backoff'] {
  if (backoff === undefined) return defaults;
  if (typeof backoff === 'string') {
    const delayMs = milliseconds(backoff);
    return { initialMs: delayMs, factor: 1, maxMs: delayMs };
  }
  const initialMs = backoff.initial === undefined ? defaults.initialMs : milliseconds(backoff.initial);
  const maxMs = backoff.max === undefined ? Math.max(initialMs, defaults.maxMs) : milliseconds(backoff.max);
  return { initialMs, factor: backoff.factor ?? defaults.factor, maxMs };
}

interface CompiledTimeout {
  readonly rule: TimeoutRule;
  readonly complaints: readonly Complaint[];
}

const ruleOf = ({ attemptMs, stepMs, stallMs }: TimeoutRule): TimeoutRule => ({
  ...(attemptMs === undefined ? {} : { attemptMs }),
  ...(stepMs === undefined ? {} : { stepMs }),
  ...(stallMs === undefined ? {} : { stallMs }),
});

/** Compiles the limits on agents. Returns `undefined` if there are none. */
export function compileSpending(budget: SpendingDefinition | undefined): SpendingLimit | undefined {
  const { cost_usd: costUsd, tokens } = budget ?? {};
  if (costUsd === undefined && tokens === undefined) return undefined;
  return { ...(costUsd === undefined ? {} : { costUsd }), ...(tokens === undefined ? {} : { tokens }) };
}

interface SpendingDefinition {
  readonly cost_usd?: number | undefined;
  readonly tokens?: number | undefined;
}

/** Compiles `timeout`, `timeout-minutes` and `budget.minutes`. An approval has only a limit for the whole step. */
export function compileTimeout(definition: StepDefinition, path: Path): CompiledTimeout {
  const { timeout, 'timeout-minutes': minutes } = definition;
  const { attempt, step, stall } =
    typeof timeout === 'string' ? { attempt: timeout, step: undefined, stall: undefined } : (timeout ?? {});
  const complaints: Complaint[] = [];
  if (minutes !== undefined && step !== undefined) {
    const message = '`timeout-minutes` and `timeout.step` set the same limit';
    complaints.push({ path: [...path, 'timeout-minutes'], atKey: true, message, hint: 'remove one of them' });
  }
  const read = (duration: string | undefined, key: Path): number | undefined => {
    if (duration === undefined) return undefined;
    const ms = milliseconds(duration);
    if (ms === 0)
      complaints.push({ path: [...path, 'timeout', ...key], message: 'a timeout must be greater than 0' });
    return ms;
  };
  const attemptMs = read(attempt, typeof timeout === 'string' ? [] : ['attempt']);
  const wholeMinutes = minutes ?? definition.budget?.minutes;
  const stepMs = read(step, ['step']) ?? (wholeMinutes === undefined ? undefined : wholeMinutes * 60_000);
  const stallMs = read(stall, ['stall']);
  if (stallMs !== undefined && definition.agent === undefined) {
    const message = '`timeout.stall` limits the silence of an agent, but this step has no agent';
    complaints.push({ path: [...path, 'timeout', 'stall'], atKey: true, message });
  }
  if (definition.approve !== undefined) return { rule: ruleOf({ stepMs: stepMs ?? attemptMs }), complaints };
  return { rule: ruleOf({ attemptMs, stepMs, stallMs }), complaints };
}

/** The schema has already validated the duration. */
const milliseconds = (duration: string): number => parseDuration(duration) ?? 0;
