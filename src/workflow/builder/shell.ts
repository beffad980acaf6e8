import { canonicalJson, type Json } from '../../core/json.ts';
import type { ShellCommand } from '../model.ts';
import { buildStep, describeOptions, optionReader, type WorkOptions } from './build.ts';
import { commandMaker, type Environment, toTexts } from './commands.ts';
import {
  type AnyFanOut,
  checkFanOut,
  type FanOutOptions,
  fansOut,
  readFanOut,
  type SelectOptions,
} from './fan-out.ts';
import {
  type After,
  type FannedOut,
  type ItemSelect,
  outputParser,
  type Schema,
  type StepHandle,
  type Stored,
  toItemSelector,
} from './handle.ts';
import { type Budget, withMinutes } from './rules.ts';
import { type AnyWorkspace, checkWork, placeOf, readWork, type WorkspaceOptions } from './work.ts';

export interface ShellStepOptions<
  A extends After,
  Input,
  Output,
  Copies extends number = 1,
  Item extends object = never,
> extends WorkOptions<A, Input>,
    WorkspaceOptions<A, Input, Item>,
    FanOutOptions<A, Input, Copies, Item> {
  /** A fixed script, so that no value can become code: values go through `env`, as in `"$TITLE"`. */
  readonly run: string;
  readonly env?: Environment | ItemSelect<A, Input, Item, Environment> | undefined;
  /** `bash` by default. */
  readonly shell?: ShellCommand['shell'] | undefined;
  /** Relative to its workspace, or to the project's root without one. */
  readonly workingDirectory?: string | undefined;
  /** Checks the outputs of the script; steps after this one get what the schema makes of them. */
  readonly output?: Schema<Output> | undefined;
  readonly budget?: Budget | undefined;
  /** Picks the best copy. One that succeeds is then enough. */
  readonly select?: SelectOptions<A, Input> | undefined;
}

/** A step that is a shell script. Throws nothing: `workflow` reports what is wrong with it. */
export function shell<
  A extends After = Record<never, never>,
  Input = unknown,
  Output = Readonly<Record<string, Json>>,
  Copies extends number = 1,
  Item extends object = never,
>(
  id: string,
  options: ShellStepOptions<A, Input, Output, Copies, Item>,
): StepHandle<FannedOut<Copies, Item, Stored<Output>>, Input> {
  const { run: script, env = {}, shell: program = 'bash', workingDirectory } = options;
  const reader = optionReader(id);
  if (typeof script !== 'string') {
    reader.problem(
      '`run` is not a text',
      'scripts are fixed: pass values through `env` and read them as "$NAME"',
    );
  } else if (script.trim() === '') {
    reader.problem('`run` is empty');
  }
  if (program !== 'bash' && program !== 'sh')
    reader.problem(`shell ${JSON.stringify(program)} is not known`, 'bash or sh');
  const isMany = fansOut(options);
  checkFanOut(options, reader);
  checkWork(options, isMany, reader);
  const place = placeOf(options, { kind: 'run', isMany });
  const fixed = { script, shell: program, workingDirectory };
  return buildStep({
    id,
    options: options.budget ? { ...options, timeout: withMinutes(options.timeout, options.budget) } : options,
    reader,
    budget: reader.spending(options.budget),
    place,
    fanOut: isMany
      ? dependencies => {
          const command = commandMaker(toItemSelector(dependencies, env), program);
          return readFanOut(options, { id, dependencies, command });
        }
      : undefined,
    body: dependencies => {
      const environment = toItemSelector(dependencies, env);
      const command = commandMaker(environment, program);
      return {
        kind: 'run',
        command: scope => ({ ...fixed, env: toTexts(environment(scope)) }),
        parseOutput: outputParser(options.output),
        work: readWork(options, { kind: 'run', isMany, dependencies, command }),
      };
    },
    describe: () => {
      const values = typeof env === 'function' ? String(env) : canonicalJson(env);
      const plain = JSON.stringify([script, program, workingDirectory ?? null, values]);
      return place.mode === 'inherited' ? plain : `${plain}${describeOptions(workOf(options))}`;
    },
  });
}

/** What a script says beyond what every script does. */
const workOf = ({
  workspace,
  setup,
  checks,
  teardown,
  artifacts,
  concurrency,
  matrix,
  maxParallel,
  onFailure,
  select,
}: AnyFanOut & AnyWorkspace) => ({
  workspace,
  setup,
  checks,
  teardown,
  artifacts,
  concurrency,
  matrix,
  maxParallel,
  onFailure,
  select,
});
