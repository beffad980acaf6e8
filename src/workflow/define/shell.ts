import { canonicalJson, type Json } from '../../core/json.ts';
import type { ShellCommand } from '../model.ts';
import { buildStep, optionReader, type WorkOptions } from './build.ts';
import { type Select, toSelector } from './dependencies.ts';
import type { After, StepHandle } from './handle.ts';
import { outputParser, type Stored } from './output.ts';
import type { Schema } from './schema.ts';

/** The values of environment variables. */
export type Environment = Readonly<Record<string, string | number | boolean>>;

export interface ShellStepOptions<A extends After, Input, Output> extends WorkOptions<A, Input> {
  /** A fixed script, so that no value can become code: values go through `env`, as in `"$TITLE"`. */
  readonly run: string;
  readonly env?: Environment | Select<A, Input, Environment> | undefined;
  /** `bash` by default. */
  readonly shell?: ShellCommand['shell'] | undefined;
  /** Relative to the project's root. */
  readonly workingDirectory?: string | undefined;
  /** Checks the outputs of the script; steps after this one get what the schema makes of them. */
  readonly output?: Schema<Output> | undefined;
}

/** A step that is a shell script. Throws nothing: `workflow` reports what is wrong with it. */
export function shell<
  A extends After = Record<never, never>,
  Input = unknown,
  Output = Readonly<Record<string, Json>>,
>(id: string, options: ShellStepOptions<A, Input, Output>): StepHandle<Stored<Output>, Input> {
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
  const fixed = { script, shell: program, workingDirectory };
  return buildStep({
    id,
    options,
    reader,
    body: dependencies => {
      const environment = toSelector(dependencies, typeof env === 'function' ? env : () => env);
      return {
        kind: 'run',
        command: scope => ({ ...fixed, env: toTexts(environment(scope)) }),
        parseOutput: outputParser(options.output),
      };
    },
    describe: () => [
      script,
      program,
      workingDirectory ?? null,
      typeof env === 'function' ? String(env) : canonicalJson(env),
    ],
  });
}

const toTexts = (environment: Environment): Record<string, string> =>
  Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, String(value)]));
