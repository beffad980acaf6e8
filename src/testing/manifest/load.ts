import { basename } from 'node:path';
import { caseTable, forms } from '../../cases/manifest/case-table.ts';
import { checkCase } from '../../cases/manifest/load.ts';
import type { CaseManifest } from '../../cases/manifest/manifest.ts';
import { DefinitionError } from '../../workflow/problems.ts';
import { ProblemList } from '../../workflow/yaml/source/problem-list.ts';
import { Site } from './site.ts';
import { TomlSource } from './toml-source.ts';

export interface CaseText {
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
