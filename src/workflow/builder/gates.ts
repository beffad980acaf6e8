import { describeOptions } from '../define/describe.ts';
import { type After, isMaybe, isStep, maybeKey, type StepHandle } from '../define/handle.ts';
import { buildStep, optionReader, type WorkOptions } from './build.ts';
import { commandMaker, type Environment } from './commands.ts';
import { type Select, toItemSelector } from './handle.ts';

export interface LandStepOptions<A extends After, Input> extends WorkOptions<A, Input> {
  /** The branch onto which the work is brought. */
  readonly onto: string | Select<A, Input, string>;
  /** Which of the steps in `after` did the work; the only work that comes before by default. */
  readonly from?: (keyof A & string) | undefined;
  /** A command that must pass on the result before the branch moves. */
  readonly verify?: string | undefined;
  /** For `verify`. */
  readonly env?: Environment | Select<A, Input, Environment> | undefined;
}

/** What a landing came to. One that could not be done fails the step. */
export interface Landed {
  readonly outcome: 'landed' | 'nothing-to-land';
  readonly onto: string;
  /** The commit that the branch is at now. */
  readonly commit: string | null;
  /** Where the work was. */
  readonly branch: string | null;
  readonly landed: readonly { readonly branch: string; readonly commit: string; readonly commits: number }[];
}

/** A step that brings work onto a branch. Throws nothing: `workflow` reports what is wrong with it. */
export function land<A extends After = Record<never, never>, Input = unknown>(
  id: string,
  options: LandStepOptions<A, Input>,
): StepHandle<Landed, Input> {
  const { onto, from, verify, env = {} } = options;
  const reader = optionReader(id);
  if (typeof onto !== 'function') reader.someText('`onto`', onto);
  if (verify !== undefined) reader.someText('`verify`', verify);
  const source = from === undefined ? undefined : sourceOf(options.after, from);
  if (from !== undefined && source === undefined)
    reader.problem(`\`from\` names "${from}", which is not in \`after\``, 'add the step to `after`');
  return buildStep({
    id,
    options,
    reader,
    place: { kind: 'land', from: source },
    body: dependencies => ({
      kind: 'land',
      onto: toItemSelector(dependencies, onto),
      from: source ?? '',
      verify: verify === undefined ? undefined : commandMaker(toItemSelector(dependencies, env))(verify),
    }),
    describe: () => describeOptions({ onto, from: source, verify, env }),
  });
}

function sourceOf(after: After | undefined, alias: string): string | undefined {
  const value: unknown = after && Object.hasOwn(after, alias) ? after[alias] : undefined;
  const step = isMaybe(value) ? value[maybeKey] : value;
  return isStep(step) ? step.id : undefined;
}
