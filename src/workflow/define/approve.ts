import type { Duration } from '../../core/time.ts';
import { buildStep, optionReader, type StepOptions } from '../builder/build.ts';
import { type Select, toSelector } from '../builder/handle.ts';
import type { OptionReader } from '../builder/rules.ts';
import type { After, StepHandle } from './handle.ts';

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
