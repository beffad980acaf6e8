import type { LandBody } from '../model.ts';
import type { WorkPlace } from '../workspace-rules.ts';
import { compileCommand } from './command.ts';
import { compileText } from './compile/expressions.ts';
import type { StepDefinition } from './schema.ts';
import type { BodySite } from './site.ts';

interface CompiledLand {
  readonly body: LandBody;
  readonly place: WorkPlace;
}

/** A step that brings work onto a branch. Whose work that is, is decided with all steps at hand. */
export function compileLand(land: string, { from, verify }: StepDefinition, site: BodySite): CompiledLand {
  const onto = compileText(land, [...site.path, 'land'], site);
  return {
    body: {
      kind: 'land',
      onto: scope => onto(site.surroundings(scope)),
      from: from ?? '',
      ...(verify === undefined ? {} : { verify: compileCommand(verify, [...site.path, 'verify'], site) }),
    },
    place: { kind: 'land', ...(from === undefined ? {} : { from }) },
  };
}
