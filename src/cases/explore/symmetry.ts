import { isDeepStrictEqual } from 'node:util';
import type { CaseManifest, CaseStep } from '../manifest/manifest.ts';

/**
 * Groups the commands of a concurrent group that differ only in their names, so that swapping them gives the same
 * case. A command that the case mentions by name is left out.
 */
export function symmetricSteps(manifest: CaseManifest): readonly (readonly string[])[] {
  const texts = [
    ...Object.values(manifest.files),
    ...Object.values(manifest.scripts),
    ...manifest.invariants.map(invariant => JSON.stringify(invariant)),
    ...manifest.claims.map(claim => JSON.stringify(claim)),
  ].join('\n');
  const groups: CaseStep[][] = [];
  for (const step of manifest.steps) {
    if (step.concurrentGroup === undefined || namesOf(step).some(name => mentions(texts, name))) continue;
    const group = groups.find(([first]) => first && areSymmetric(manifest, first, step));
    if (group) group.push(step);
    else groups.push([step]);
  }
  return groups.filter(({ length }) => length > 1).map(group => group.map(({ name }) => name));
}

function areSymmetric({ triggers }: CaseManifest, a: CaseStep, b: CaseStep): boolean {
  const [ours, theirs] = [a, b].map(({ name, position: _, args, ...rest }) => ({
    ...rest,
    args: args.map((arg, at) => (isName(args, at) ? '' : arg)),
    triggers: triggers.filter(({ step }) => step === name).map(nameless),
  }));
  return isDeepStrictEqual(ours, theirs);
}

const nameless = ({ step: _, position: __, ...rest }: CaseManifest['triggers'][number]) => rest;

const isName = (args: readonly string[], at: number): boolean => args[at - 1] === '--name';

const namesOf = ({ name, args }: CaseStep): readonly string[] => [
  name,
  ...args.filter((_, at) => isName(args, at)),
];

const mentions = (text: string, name: string): boolean =>
  new RegExp(`(?<!\\w)${name.replaceAll(/\W/g, '\\$&')}(?!\\w)`).test(text);
