import type { KillAfter } from '../../cases/manifest/manifest.ts';
import { byKind, described, mapped, type Reader, text, whole } from '../../cases/manifest/reader.ts';
import { knownType, knownTypes } from '../../core/parse-event.ts';
import { nearest } from '../../core/suggest.ts';
import { optional, table } from './table.ts';

const byName: Reader<KillAfter> = mapped(text, (effect, site) => {
  if (knownType(effect) === undefined) return { kind: 'effect', effect, nth: 1 };
  site.refuse(`names the event \`${effect}\` as if it were an effect`, `write { event = "${effect}" }`);
  return undefined;
});

const event: Reader<string> = mapped(text, (name, site) => {
  if (knownType(name) !== undefined) return name;
  const guess = nearest(name, knownTypes);
  site.refuse(
    `must be an event of a history, not \`${name}\``,
    guess
      ? `did you mean "${guess}"?`
      : '`reprise history <run>` shows events; for an effect write { effect = "..." }',
  );
  return undefined;
});

const inDetail: Reader<KillAfter> = table({
  fields: {
    effect: optional(described(text, 'The name of an effect, as it is on the tape.')),
    event: optional(described(event, 'The type of an event of the history.')),
    step: optional(
      described(text, 'The step of the workflow that the event is about; any unless it is set.'),
    ),
    nth: optional(described(whole(1), 'Which of them, counted from 1.'), 1),
  },
  build: ({ effect, event, step, nth }, site, hasUnknownKeys) => {
    if (site.has('effect') === site.has('event')) {
      if (!hasUnknownKeys) site.refuse('needs either `effect` or `event`');
      return undefined;
    }
    if (event !== undefined) return { kind: 'event', event, step, nth };
    if (effect === undefined) return undefined;
    if (site.has('step')) site.at('step').object({ message: '`step` goes with `event` only', atKey: true });
    return { kind: 'effect', effect, nth };
  },
});

/** The name of an effect, or a table that says which effect or event. */
export const killAfter: Reader<KillAfter> = byKind({ text: byName, table: inDetail });
