import { canonicalJson, type Json } from '../../core/index.ts';
import type { ShellCommand } from '../model.ts';
import { buildStep, describeOptions, optionReader, type WorkOptions } from './build.ts';
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
import { type Budget, commandMaker, type StepEnvironment, toTexts, withMinutes } from './rules.ts';
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
  /** Fixed script. Pass values through `env` and read them as `"$TITLE"`, so that no value can become code. */
  readonly run: string;
  readonly env?: StepEnvironment | ItemSelect<A, Input, Item, StepEnvironment> | undefined;
  /** Shell that runs the script. Defaults to `bash`. */
  readonly shell?: ShellCommand['shell'] | undefined;
  /** Folder that the script runs in, relative to its workspace, or to the project's root if it has none. */
  readonly workingDirectory?: string | undefined;
  /** Schema that validates the outputs of the script. Later steps read the parsed value. */
  readonly output?: Schema<Output> | undefined;
  readonly budget?: Budget | undefined;
  /** Picks the best copy. The step succeeds if at least one copy does. */
  readonly select?: SelectOptions<A, Input> | undefined;
}

/** Defines a step that runs a shell script. Never throws: `workflow` reports its problems. */
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
      '`run` must be a string',
      'scripts are fixed: pass values through `env` and read them as "$NAME"',
    );
  } else if (script.trim() === '') {
    reader.problem('`run` is empty');
  }
  reader.oneOf('shell', program, ['bash', 'sh']);
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

/** Picks the options that only some scripts have, for the fingerprint. */
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
