import { basename } from 'node:path';
import { nearest } from '../../core/index.ts';
import { FileRefusedError, fileLimits, readBoundedText } from '../../effects/index.ts';
import { DefinitionError } from '../../workflow/index.ts';
import { ProblemList } from '../../workflow/yaml/source/index.ts';
import { type CaseValues, caseTable, forms } from './case-table.ts';
import { fileUsedAsFolder } from './fields.ts';
import type { FoundCase } from './find.ts';
import type { CaseManifest, Texts } from './manifest.ts';
import { TomlSite } from './reader.ts';
import type { ParsedStep } from './step.ts';
import { TomlSource } from './toml.ts';

interface CaseText {
  readonly file: string;
  /** Path of the file in messages. */
  readonly displayFile: string;
  readonly text: string;
}

/** Parses a case file. Throws a DefinitionError with all its problems. */
export function loadCase({ file, displayFile, text }: CaseText): CaseManifest {
  const source = new TomlSource({ displayFile, text });
  const problems = new ProblemList();
  if (source.fault) problems.addText(source, [source.fault]);
  const manifest =
    source.value && readManifest(new TomlSite(source, problems, source.value), { file, displayFile });
  if (!manifest || problems.count > 0) throw new DefinitionError(problems.all());
  return manifest;
}

function readManifest(
  site: TomlSite,
  { file, displayFile }: Omit<CaseText, 'text'>,
): CaseManifest | undefined {
  const values = caseTable.read(site);
  if (!values) return undefined;
  const parsed = [...values.multi, ...values.run, ...values.worker_test];
  checkCase(values, parsed, site);
  const { description, model, fidelity, live, env, timeline, files, scripts, base, invariants, explore } =
    values;
  const { definitions } = values;
  return {
    name: basename(file, '.toml'),
    file,
    displayFile,
    form: forms.find(form => site.has(form)) ?? 'multi',
    steps: parsed.map(({ step }) => step),
    description,
    recordedBy: values.recorded_by,
    showThinking: values.show_thinking,
    model,
    fidelity,
    live,
    env,
    timeline,
    files,
    scripts,
    definitions,
    triggers: values.triggers.map(({ trigger }) => trigger),
    claims: values.claims,
    base,
    invariants,
    explore,
  };
}

/** Reports values that are valid by themselves but not in combination. */
function checkCase(values: CaseValues, steps: readonly ParsedStep[], site: TomlSite): void {
  checkForm(site);
  checkNames(steps);
  checkScripts(steps, values.scripts);
  checkTriggers(values, steps);
  checkFiles(values.files, site);
}

function checkForm(site: TomlSite): void {
  const [first, ...more] = writtenForms(site);
  for (const form of more)
    site.at(form).object({
      message: `a case cannot have both [${first}] and [${form}]`,
      hint: `move [${form}] into a separate case`,
      atKey: true,
    });
  if (first === undefined && !Object.keys(site.value as object).some(isAlmostForm))
    site.object({
      message: 'the case has no commands',
      hint: 'add [run] for a single command, [multi] with `steps` for several, or [worker_test]',
    });
}

/** Whether a key, already reported as unknown, was probably meant as a form or as a key of one. */
const isAlmostForm = (key: string): boolean =>
  nearest(key, forms) !== undefined || ['steps', 'command', 'args', 'workers', 'num_workers'].includes(key);

/** Returns the forms of the case in the order of the file. */
const writtenForms = (site: TomlSite): readonly string[] =>
  Object.keys(site.value as object).filter(key => forms.some(form => form === key));

/** Names of other sections of the snapshot. */
const reserved = ['result', 'timeline'];

function checkNames(steps: readonly ParsedStep[]): void {
  const seen = new Map<string, string>();
  for (const { step, site } of steps) {
    if (step.name === '') continue;
    const nameSite = site.has('name') ? site.at('name') : site;
    if (reserved.includes(step.name))
      nameSite.object({
        message: `\`${step.name}\` is reserved for a section of the snapshot`,
        hint: 'choose another name',
      });
    // Every command has files, and some file systems are case-insensitive.
    const known = seen.get(step.name.toLowerCase());
    if (known === step.name) nameSite.object({ message: `the name \`${known}\` is already used` });
    else if (known !== undefined)
      nameSite.object({ message: `the names \`${step.name}\` and \`${known}\` differ only in case` });
    seen.set(step.name.toLowerCase(), step.name);
  }
}

function checkScripts(steps: readonly ParsedStep[], scripts: Texts): void {
  for (const { step, site } of steps) {
    if (step.script === undefined || Object.hasOwn(scripts, step.script)) continue;
    const guess = nearest(step.script, Object.keys(scripts));
    site.at('script').object({
      message: `[scripts] has no script named \`${step.script}\``,
      hint: guess && `did you mean "${guess}"?`,
    });
  }
}

function checkTriggers({ triggers }: CaseValues, steps: readonly ParsedStep[]): void {
  const commands = new Map(steps.map(({ step }) => [step.name, step.command]));
  for (const { trigger, site } of triggers) {
    if (trigger.step === '') continue;
    const command = commands.get(trigger.step);
    const stepSite = site.at('step');
    if (command === 'shell')
      stepSite.object({
        message: `\`${trigger.step}\` is a shell command, and has no effects that could fire a trigger`,
      });
    if (command !== undefined) continue;
    const names = [...commands.keys()].filter(name => name !== '');
    const guess = nearest(trigger.step, names);
    const list = names.length > 0 ? `commands of the case: ${names.join(', ')}` : undefined;
    stepSite.object({
      message: `the case has no command named \`${trigger.step}\``,
      hint: guess ? `did you mean "${guess}"?` : list,
    });
  }
}

function checkFiles(files: Texts, site: TomlSite): void {
  const paths = Object.keys(files).filter(path => path !== '' && !path.startsWith('/'));
  const conflict = fileUsedAsFolder(paths);
  if (conflict)
    site
      .at('files')
      .at(conflict.path)
      .object({
        message: `\`${conflict.file}\` is a file, so it cannot contain \`${conflict.path}\``,
        atKey: true,
      });
}

/** Reads a case file. Throws DEFINITION_INVALID. */
export const readCase = ({ file, displayFile }: FoundCase): CaseManifest =>
  loadCase({ file, displayFile, text: textOf(file, displayFile) });

function textOf(file: string, displayFile: string): string {
  try {
    return readBoundedText(file, { maxBytes: fileLimits.caseFile });
  } catch (error) {
    if (!(error instanceof FileRefusedError)) throw error;
    const position = { file: displayFile, line: 1, column: 1 };
    throw new DefinitionError([{ message: `the file ${error.message}`, position }]);
  }
}
