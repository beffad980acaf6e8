import type { Command, Selector, ShellCommand } from '../model.ts';

/** Values of environment variables, by name. */
export type StepEnvironment = Readonly<Record<string, string | number | boolean>>;

export const toTexts = (environment: StepEnvironment): Record<string, string> =>
  Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, String(value)]));

/** Creates a command that runs beside the main work of a step. */
export type CommandMaker = (text: string) => Command;

/** The text of a command is fixed. Values reach it through the environment of the step. */
export const commandMaker =
  (environment: Selector<StepEnvironment>, shell: ShellCommand['shell'] = 'bash'): CommandMaker =>
  text => ({
    text,
    command: scope => ({ script: text, shell, env: toTexts(environment(scope)) }),
  });

export const commandsOf = (texts: readonly string[] | undefined, command: CommandMaker): readonly Command[] =>
  (texts ?? []).map(command);
