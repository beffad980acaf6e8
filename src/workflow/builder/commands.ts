import type { Command, Selector, ShellCommand } from '../model.ts';

/** The values of environment variables. */
export type Environment = Readonly<Record<string, string | number | boolean>>;

export const toTexts = (environment: Environment): Record<string, string> =>
  Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, String(value)]));

/** Makes a command that stands beside the main work of a step. */
export type CommandMaker = (text: string) => Command;

/** Commands are fixed; values reach them through the environment of the step. */
export const commandMaker =
  (environment: Selector<Environment>, shell: ShellCommand['shell'] = 'bash'): CommandMaker =>
  text => ({
    text,
    command: scope => ({ script: text, shell, env: toTexts(environment(scope)) }),
  });

export const commandsOf = (texts: readonly string[] | undefined, command: CommandMaker): readonly Command[] =>
  (texts ?? []).map(command);
