import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { nearest } from '../../core/suggest.ts';
import { DefinitionError } from '../../workflow/problems.ts';
import { ProblemList } from '../../workflow/yaml/source/problem-list.ts';
import { type CaseValues, caseTable, forms } from './case-table.ts';
import { fileInTheWay } from './fields.ts';
import type { FoundCase } from './find.ts';
import type { CaseManifest, Texts } from './manifest.ts';
import { Site } from './reader.ts';
import type { PlacedStep } from './step.ts';
import { TomlSource } from './toml.ts';

interface CaseText {
  readonly file: string;
  /** What messages call the file. */
  readonly displayFile: string;
  readonly text: string;
}

/** Reads a case file. Throws a DefinitionError with all that is wrong with it. */
export function loadCase({ file, displayFile, text }: CaseText): CaseManifest {
  const source = new TomlSource({ displayFile, text });
  const problems = new ProblemList();
  if (source.fault) problems.addText(source, [source.fault]);
  const manifest =
    source.value && readManifest(new Site(source, problems, source.value), { file, displayFile });
  if (!manifest || problems.count > 0) throw new DefinitionError(problems.all());
  return manifest;
}

function readManifest(site: Site, { file, displayFile }: Omit<CaseText, 'text'>): CaseManifest | undefined {
  const values = caseTable.read(site);
  if (!values) return undefined;
  const placed = [...values.multi, ...values.run, ...values.worker_test];
  checkCase(values, placed, site);
  const { description, model, fidelity, live, env, timeline, files, scripts, base, invariants, explore } =
    values;
  const { definitions } = values;
  return {
    name: basename(file, '.toml'),
    file,
    displayFile,
    form: forms.find(form => site.has(form)) ?? 'multi',
    steps: placed.map(({ step }) => step),
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

/** Objects to what is right by itself and wrong together. */
function checkCase(values: CaseValues, steps: readonly PlacedStep[], site: Site): void {
  checkForm(site);
  checkNames(steps);
  checkScripts(steps, values.scripts);
  checkTriggers(values, steps);
  checkFiles(values.files, site);
}

function checkForm(site: Site): void {
  const [first, ...more] = writtenForms(site);
  for (const form of more)
    site.at(form).object({
      message: `a case has either [${first}] or [${form}], not both`,
      hint: `put [${form}] into a case of its own`,
      atKey: true,
    });
  if (first === undefined && !Object.keys(site.value as object).some(isAlmostForm))
    site.object({
      message: 'the case has no steps',
      hint: 'write [multi] with `steps`, [run] for a single command, or [worker_test]',
    });
}

/** A key that was objected to already, and that would be right as a form or inside of one. */
const isAlmostForm = (key: string): boolean =>
  nearest(key, forms) !== undefined || ['steps', 'command', 'args', 'workers', 'num_workers'].includes(key);

/** In the order of the file. */
const writtenForms = (site: Site): readonly string[] =>
  Object.keys(site.value as object).filter(key => forms.some(form => form === key));

/** These name sections of the snapshot. */
const reserved = ['result', 'timeline'];

function checkNames(steps: readonly PlacedStep[]): void {
  const seen = new Map<string, string>();
  for (const { step, site } of steps) {
    if (step.name === '') continue;
    const place = site.has('name') ? site.at('name') : site;
    if (reserved.includes(step.name))
      place.object({
        message: `no step can be named \`${step.name}\`: the snapshot has a section of that name`,
      });
    // Some file systems take names that differ in case only for one, and each step has files.
    const known = seen.get(step.name.toLowerCase());
    if (known === step.name) place.object({ message: `there is a step \`${known}\` already` });
    else if (known !== undefined)
      place.object({ message: `\`${step.name}\` and \`${known}\` differ in upper and lower case only` });
    seen.set(step.name.toLowerCase(), step.name);
  }
}

function checkScripts(steps: readonly PlacedStep[], scripts: Texts): void {
  for (const { step, site } of steps) {
    if (step.script === undefined || Object.hasOwn(scripts, step.script)) continue;
    const guess = nearest(step.script, Object.keys(scripts));
    site.at('script').object({
      message: `there is no script \`${step.script}\` in [scripts]`,
      hint: guess && `did you mean "${guess}"?`,
    });
  }
}

function checkTriggers({ triggers }: CaseValues, steps: readonly PlacedStep[]): void {
  const commands = new Map(steps.map(({ step }) => [step.name, step.command]));
  for (const { trigger, site } of triggers) {
    if (trigger.step === '') continue;
    const command = commands.get(trigger.step);
    const place = site.at('step');
    if (command === 'shell')
      place.object({
        message: `\`${trigger.step}\` is a shell step: it has no effects that could fire a trigger`,
      });
    if (command !== undefined) continue;
    const names = [...commands.keys()].filter(name => name !== '');
    const guess = nearest(trigger.step, names);
    place.object({
      message: `there is no step \`${trigger.step}\``,
      hint: guess ? `did you mean "${guess}"?` : names.length > 0 ? `steps: ${names.join(', ')}` : undefined,
    });
  }
}

function checkFiles(files: Texts, site: Site): void {
  const paths = Object.keys(files).filter(path => path !== '' && !path.startsWith('/'));
  const conflict = fileInTheWay(paths);
  if (conflict)
    site
      .at('files')
      .at(conflict.path)
      .object({
        message: `\`${conflict.file}\` is a file, so \`${conflict.path}\` cannot be inside of it`,
        atKey: true,
      });
}

/** Throws DEFINITION_INVALID. */
export const readCase = ({ file, displayFile }: FoundCase): CaseManifest =>
  loadCase({ file, displayFile, text: readFileSync(file, 'utf8') });
