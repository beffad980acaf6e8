import type { Duration } from '../../core/time.ts';
import { buildStep, describeOptions, optionReader, type StepOptions, type WorkOptions } from './build.ts';
import { commandMaker, type Environment } from './commands.ts';
import {
  type After,
  isMaybe,
  isStep,
  maybeKey,
  type Select,
  type StepHandle,
  toItemSelector,
  toSelector,
} from './handle.ts';
import type { OptionReader } from './rules.ts';

export interface ApproveOptions<A extends After, Input, Choice extends string>
  extends Omit<StepOptions<A, Input>, 'timeout'> {
  /** What the person is asked. */
  readonly message: string | Select<A, Input, string>;
  /** `approve` and `reject` by default. `reject` fails the step, any other choice completes it. */
  readonly choices?: readonly Choice[] | undefined;
  /** How long to wait for an answer, over all resumes; then the step fails. */
  readonly timeout?: Duration | undefined;
}

/** What a person answered. `reject` is not among the choices: it fails the step. */
export interface Approval<Choice extends string> {
  readonly choice: Choice;
  readonly by?: string;
  readonly comment?: string;
}

const defaultChoices = ['approve', 'reject'] as const;

/** A gate that waits for a person. Throws nothing: `workflow` reports what is wrong with it. */
export function approve<
  A extends After = Record<never, never>,
  Input = unknown,
  const Choice extends string = (typeof defaultChoices)[number],
>(
  id: string,
  options: ApproveOptions<A, Input, Choice>,
): StepHandle<Approval<Exclude<Choice, 'reject'>>, Input> {
  const { message, timeout, ...rest } = options;
  const choices: readonly string[] = options.choices ?? defaultChoices;
  const reader = optionReader(id);
  checkChoices(choices, reader);
  if (typeof message === 'string' && message.trim() === '') reader.problem('`message` is empty');
  return buildStep({
    id,
    options: { ...rest, timeout: timeout === undefined ? undefined : { step: timeout } },
    reader,
    body: dependencies => {
      const text = toSelector(dependencies, typeof message === 'function' ? message : () => message);
      return { kind: 'approve', request: scope => ({ message: text(scope), choices }) };
    },
    describe: () => JSON.stringify([typeof message === 'function' ? String(message) : message, choices]),
  });
}

function checkChoices(choices: readonly string[], reader: OptionReader): void {
  const twice = choices.find((choice, index) => choices.indexOf(choice) !== index);
  if (twice !== undefined) reader.problem(`the choice ${JSON.stringify(twice)} is there twice`);
  if (choices.some(choice => choice.trim() === '')) reader.problem('a choice is empty');
  if (choices.every(choice => choice === 'reject')) {
    reader.problem('no choice lets the run go on', 'offer at least one besides "reject"');
  }
}

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
