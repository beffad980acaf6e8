import type { CaseManifest, CaseStep } from '../../cases/manifest/manifest.ts';

/**
 * What runs after what: steps in one group run at the same time. A group is a single step, or neighbours with the same
 * `concurrent_group`; a name that comes again after something else is another group.
 */
export function groupsOf({ steps }: Pick<CaseManifest, 'steps'>): readonly (readonly CaseStep[])[] {
  const groups: CaseStep[][] = [];
  for (const step of steps) {
    const last = groups.at(-1);
    const name = step.concurrentGroup;
    if (last && name !== undefined && last[0]?.concurrentGroup === name) last.push(step);
    else groups.push([step]);
  }
  return groups;
}
