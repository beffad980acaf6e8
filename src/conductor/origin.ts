import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

type Above = (...args: never[]) => unknown;

/** Frames of one request: the first is who asked, the others are for callers that only pass on. */
const frames = 4;

/** Where in the source something was asked for. Cheap to take; only a message that needs it makes text of it. */
export class Origin {
  declare readonly stack: string;

  /** `above` is the function whose caller is wanted. */
  constructor(above: Above) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = frames;
    Error.captureStackTrace(this, above);
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Of what nobody will ask about: taking one is a tenth of the work of an effect in memory. */
export const unknownOrigin: Origin = { stack: '' };

/** `src/land.ts:88`, below `root` if that is given; undefined if no code of ours asked. */
export function sourceOf({ stack }: { readonly stack: string }, root?: string): string | undefined {
  for (const line of stack.split('\n')) {
    const found = /^\s+at (?:.* \()?(?:async )?(.+?):(\d+):\d+\)?$/.exec(line);
    const [, place = '', row] = found ?? [];
    if (!found || place.startsWith('node:') || isBoundary(place)) continue;
    return `${shown(place, root)}:${row}`;
  }
  return undefined;
}

/** Code of the boundary itself; in a bundle it has no folder of its own, but is left out by `above`. */
const isBoundary = (place: string): boolean =>
  /\/(src|dist)\/(world|conductor)\/[^/]+$/.test(place) && !/\.test\.[jt]s$/.test(place);

function shown(place: string, root: string | undefined): string {
  const file = place.startsWith('file:') ? fileURLToPath(place) : place;
  if (root === undefined) return file;
  const below = relative(root, file);
  return below.startsWith('..') ? file : below;
}
