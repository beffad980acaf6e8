import { Option } from 'commander';
import type { Registry } from './program.ts';

/** The commands around definitions and the installation. */
export function registerToolCommands({ io, add }: Registry): void {
  add('init', async (_, options) => {
    const { initCommand } = await import('../commands/init/init.ts');
    return initCommand({ io }, options);
  })
    .description('Set a repository up: reprise.yaml, agents, and an example of a workflow and of a task.')
    .addOption(
      new Option('--agent <program>', 'which program plays the agents (default: claude)').choices([
        'claude',
        'codex',
        'gemini',
        'opencode',
      ]),
    )
    .option('--yes', 'overwrite what is there and differs, without asking')
    .option('--dry-run', 'only say what would be made')
    .option('--json', 'as one JSON object, without asking');

  add('graph <workflow>', async ([workflow = ''], options) => {
    const { graphCommand } = await import('../commands/graph.ts');
    return graphCommand({ io }, { ...options, workflow });
  })
    .description('Draw the steps of a workflow.')
    .option('--mermaid', 'as a Mermaid flowchart')
    .option('--json', 'as one JSON object')
    .option('--run <run>', 'show where the steps of this run stand');

  add('validate [targets...]', async (targets, options) => {
    const { validateCommand } = await import('../commands/validate.ts');
    return validateCommand({ io }, { ...options, targets: targets.filter(target => target !== undefined) });
  })
    .description('Check workflows (by default all of the project, and reprise.yaml) without running them.')
    .option('--json', 'one object a file');

  add('gc', async (_, options) => {
    const { gcCommand } = await import('../commands/gc.ts');
    return gcCommand({ io }, options);
  })
    .description('Remove workspaces and branches of runs that have ended. Work that has not landed is kept.')
    .option('--dry-run', 'only say what would be removed')
    .option('--json', 'as one JSON object');

  add('doctor', async (_, options) => {
    const { doctorCommand } = await import('../commands/doctor.ts');
    return doctorCommand({ io }, options);
  })
    .description('Check what runs depend on, and say what to do about what is missing.')
    .option('--json', 'one object a line');

  add('demo [name]', async ([name], options) => {
    const { demoCommand } = await import('../commands/demo/demo.ts');
    return demoCommand({ io }, { ...options, name });
  })
    .description('Watch two workers do three tasks, or five agents at once (fan-out), through a crash.')
    .option('--clean', 'remove the folder at the end, instead of leaving it to look around in');
}
