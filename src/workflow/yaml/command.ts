import type { Command, Selector, ShellCommand } from '../model.ts';
import { type Compiled, reportUnknownNames } from './compile/expressions.ts';
import { environmentText, parseShellTemplate } from './shell/template.ts';
import type { BodySite } from './site.ts';
import type { Path } from './source/yaml-source.ts';

export interface ScriptOptions {
  readonly shell?: ShellCommand['shell'] | undefined;
  readonly workingDirectory?: Compiled<string> | undefined;
}

/** A script in which every `${{ }}` is a value that travels in the environment. */
export function compileScript(
  script: string,
  path: Path,
  site: BodySite,
  { shell = 'bash', workingDirectory }: ScriptOptions = {},
): Selector<ShellCommand> {
  const template = parseShellTemplate(script, shell);
  site.problems.addFaults(site.source, path, template.faults);
  for (const { expression } of template.values) reportUnknownNames(expression, path, site);
  return scope => {
    const surroundings = site.surroundings(scope);
    const values = template.values.map(
      ({ name, expression }) => [name, environmentText(expression, surroundings)] as const,
    );
    return {
      script: template.script,
      shell,
      env: { ...site.environment(scope), ...Object.fromEntries(values) },
      ...(workingDirectory ? { workingDirectory: workingDirectory(surroundings) } : {}),
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

/** A command, or a list of them. */
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
