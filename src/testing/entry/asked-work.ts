import type { Asked } from '../../effects/conductor/scheduler.ts';
import { topLane } from '../../effects/recording/recording.ts';
import { unitOf } from '../../engine/state/graph.ts';

/** A piece of the work of a step that a lane asks for. */
export type AskedWork = {
  /** The step of the case. */
  readonly step: string;
  readonly unit: string;
} & (
  | { readonly kind: 'session' | 'function'; readonly key: string }
  | { readonly kind: 'shell'; readonly script: ScriptOfUnit }
  | { readonly kind: 'landing' }
);

interface ScriptOfUnit {
  readonly unit: { readonly step: string; readonly worker?: number | undefined; readonly attempt: number };
  readonly what?: string | undefined;
}

/** `undefined` for everything that is not the work of a step. */
export function askedWork({
  effect,
  args,
  lane,
}: Pick<Asked, 'effect' | 'args' | 'lane'>): AskedWork | undefined {
  const step = topLane(lane.name);
  switch (effect.name) {
    case 'function.next': {
      const key = String(args);
      return { kind: 'function', step, key, unit: key.slice(key.indexOf(':') + 1) };
    }
    case 'session.next': {
      const { key } = args as { readonly key: string };
      // run:unit:attempt:number, and a unit may have colons too.
      return { kind: 'session', step, key, unit: key.split(':').slice(1, -2).join(':') };
    }
    case 'shell.run':
    case 'shell.clean-up': {
      const script = args as ScriptOfUnit;
      return { kind: 'shell', step, script, unit: unitOf(script.unit.step, script.unit.worker) };
    }
    case 'land.lock': {
      const { unit } = args as ScriptOfUnit;
      return { kind: 'landing', step, unit: unitOf(unit.step, unit.worker) };
    }
    default:
      return undefined;
  }
}
