import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { RepriseError } from '../../core/errors.ts';
import type { CommandIo } from '../../project/host.ts';
import { displayPath, findUpwards } from '../../project/project.ts';
import { safeLine } from '../../view/safe-text.ts';
import type { Config } from '../../workflow/yaml/config.ts';
import { type Answers, answersFrom, canBeAsked } from './answers.ts';
import type { FileOutcome } from './report.ts';
import { survey } from './survey.ts';
import { configInitFile, type InitAgent, type InitFile, otherInitFiles } from './templates.ts';

export interface InitOptions {
  /** The program that plays the agents; `claude` unless given. */
  readonly agent?: InitAgent | undefined;
  /** Every question is answered with yes. */
  readonly yes?: boolean | undefined;
  /** Only say what would be done. */
  readonly dryRun?: boolean | undefined;
  /** Nobody is asked. */
  readonly json?: boolean | undefined;
}

export interface Decision extends FileOutcome {
  readonly file: InitFile;
}

export interface Plan {
  readonly decisions: readonly Decision[];
  readonly notes: readonly string[];
}

/** Finds out about each file what is to become of it. Writes nothing. */
export async function decideAll(
  root: string,
  io: CommandIo,
  { agent = 'claude', ...options }: InitOptions,
): Promise<Plan | 'interrupted'> {
  const answers = !options.json && !options.dryRun && canBeAsked(io) ? answersFrom(io) : undefined;
  const decide = (file: InitFile) => decision(file, { root, io, options, answers });
  const config = await decide(configInitFile);
  if (config === 'interrupted') return config;
  const { settings, notes } = await settingsAfter(config, root);
  const { defaultTaskSource } = await import('../../workflow/yaml/config-workers.ts');
  const tasks = settings.tasks ?? defaultTaskSource;
  const decisions = [config];
  for (const file of otherInitFiles(agent, tasks.kind === 'folder' ? tasks.folder : undefined)) {
    const isDefined = file.agent !== undefined && Object.hasOwn(settings.agents ?? {}, file.agent);
    const made = isDefined
      ? skipped(file, `reprise.yaml defines the agent ${file.agent}`)
      : await decide(file);
    if (made === 'interrupted') return made;
    decisions.push(made);
  }
  return { decisions, notes: [...notes, ...nearerProject(root, io)] };
}

const skipped = (file: InitFile, why: string): Decision => ({
  file,
  path: file.path,
  outcome: 'skipped',
  why,
});

interface Circumstances {
  readonly root: string;
  readonly io: CommandIo;
  readonly options: InitOptions;
  /** Absent if nobody can be asked. */
  readonly answers: Answers | undefined;
}

async function decision(
  file: InitFile,
  { root, io, options, answers }: Circumstances,
): Promise<Decision | 'interrupted'> {
  const found = survey(file, root);
  const decided = (outcome: FileOutcome['outcome'], why?: string) => ({
    file,
    path: file.path,
    outcome,
    why,
  });
  switch (found.kind) {
    case 'missing':
      return decided('made');
    case 'not-needed':
      return skipped(file, 'there are others in its folder');
    case 'same':
      return decided('same');
    case 'blocked':
      throw new RepriseError(
        'INIT_FAILED',
        `${file.path} cannot be made: ${found.why}. Nothing was changed`,
        {
          hint: 'move it away or mend it, then try again: reprise init',
        },
      );
    case 'different': {
      if (file.isExample) return decided('kept', 'it is no longer the example');
      if (options.yes) return decided('overwritten');
      if (options.dryRun) return decided('differs');
      const kept = decided('kept', 'it differs; to overwrite everything that does: reprise init --yes');
      if (!answers) return kept;
      const shown = displayPath(io, join(root, file.path));
      const answer = await answers.confirm(`overwrite ${safeLine(shown)}?`);
      if (answer === undefined) return 'interrupted';
      return answer ? decided('overwritten') : decided('kept', 'it differs');
    }
  }
}

/** The settings that will hold: those in a file that stays, or else those of the one that is made. */
async function settingsAfter(
  { file, outcome }: Decision,
  root: string,
): Promise<{ readonly settings: Config; readonly notes: readonly string[] }> {
  const isKept = outcome === 'kept' || outcome === 'differs';
  const text = isKept ? readFileSync(join(root, file.path), 'utf8') : file.text;
  const { loadConfig } = await import('../../workflow/yaml/config.ts');
  try {
    return { settings: loadConfig({ file: file.path, text }), notes: [] };
  } catch (error) {
    if (!(error instanceof RepriseError)) throw error;
    return { settings: {}, notes: [`${file.path} has problems; see them: reprise validate ${file.path}`] };
  }
}

/** Commands in a folder below work with what is nearest. */
function nearerProject(root: string, { cwd }: CommandIo): readonly string[] {
  const nearer = findUpwards(
    cwd,
    folder => folder === root || ['.reprise', 'reprise.yaml'].some(mark => existsSync(join(folder, mark))),
  );
  if (nearer === undefined || nearer === root) return [];
  return [`commands in ${relative(root, nearer)} use the project there, not this one`];
}
