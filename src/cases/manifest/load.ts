import { nearest } from '../../core/suggest.ts';
import { fileInTheWay } from '../../testing/manifest/paths.ts';
import type { Site } from '../../testing/manifest/site.ts';
import { type CaseValues, forms } from './case-table.ts';
import type { Texts } from './manifest.ts';
import type { PlacedStep } from './step.ts';

/** Objects to what is right by itself and wrong together. */
export function checkCase(values: CaseValues, steps: readonly PlacedStep[], site: Site): void {
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
