import type { Json, JsonObject } from '../../core/json.ts';
import { commitId, duration } from './fields.ts';
import { caseSignals, type Trigger, type TriggerAction } from './manifest.ts';
import {
  anyText,
  byKind,
  described,
  type Field,
  kindOf,
  mapOf,
  mapped,
  oneOf,
  optional,
  type Reader,
  refuseKind,
  required,
  type Site,
  table,
  text,
  truth,
  type ValuesOf,
  whole,
} from './reader.ts';

const words = ['exit', 'input', 'signal', 'advance_clock', 'move_main'] as const;

type Word = (typeof words)[number];

const exit: TriggerAction = { kind: 'exit' };

const values = {
  input: optional(described(anyText, 'What somebody types.')),
  signal: optional(described(oneOf(caseSignals), 'The signal that the step gets.')),
  advance_clock: optional(described(duration, 'By how much the clock goes forward.')),
  move_main: optional(
    described(commitId, 'The commit that somebody else moves main, or the branch of [base], to.'),
  ),
} as const satisfies Readonly<Record<string, Field<unknown>>>;

function actionOf(
  word: Word,
  { input, signal, advance_clock: ms, move_main: commit }: ValuesOf<typeof values>,
): TriggerAction | undefined {
  switch (word) {
    case 'exit':
      return exit;
    case 'input':
      return input === undefined ? undefined : { kind: 'input', text: input };
    case 'signal':
      return signal === undefined ? undefined : { kind: 'signal', signal };
    case 'advance_clock':
      return ms === undefined ? undefined : { kind: 'advance_clock', ms };
    case 'move_main':
      return commit === undefined ? undefined : { kind: 'move_main', commit };
  }
}

/** What an action is written as: its word, with its value beside it, or a table with both. */
type Written = { readonly word: Word } | { readonly action: TriggerAction };

const inTable: Reader<Written> = table({
  fields: {
    exit: optional(described(truth, '`true`: the step is asked to end, but by no signal.')),
    ...values,
  },
  build: (given, site, hasUnknownKeys) => {
    const [word, ...more] = words.filter(key => site.has(key));
    if (!word || more.length > 0) {
      if (!hasUnknownKeys)
        site.refuse('needs exactly one of `exit`, `input`, `signal`, `advance_clock` and `move_main`');
      return undefined;
    }
    if (given.exit === false) site.at('exit').refuse('must be true');
    const action = actionOf(word, given);
    return action && { action };
  },
});

const written: Reader<Written> = byKind({
  text: mapped(oneOf(words), word => ({ word })),
  table: inTable,
});

const anyJson: Reader<Json> = {
  schema: {},
  read: site => {
    switch (kindOf(site.value)) {
      case 'date':
        return refuseKind(site, 'text');
      case 'list':
        return (site.value as readonly unknown[]).map((_, index) => anyJson.read(site.at(index)) ?? null);
      case 'table':
        return jsonTable().read(site);
      default:
        return site.value as Json;
    }
  },
};

function jsonTable(): Reader<JsonObject> {
  return mapOf(anyJson);
}

/** A trigger with its place, so that the step that it names can be looked for. */
export interface PlacedTrigger {
  readonly trigger: Trigger;
  readonly site: Site;
}

export const trigger: Reader<PlacedTrigger> = table({
  fields: {
    step: required(described(text, 'A step of the case.'), ''),
    label: required(described(text, 'The name of the effect, as it is on the tape.'), ''),
    fields: optional(
      described(jsonTable(), 'Arguments that the effect must have; others may be anything.'),
      {},
    ),
    nth: optional(described(whole(1), 'Which of the effects that fit, counted from 1.'), 1),
    action: required<Written | undefined>(
      described(written, 'What happens: a word with its value beside it, or a table with both.'),
      undefined,
    ),
    ...values,
  },
  build: ({ step, label, fields, nth, action, ...given }, site) => {
    const word = action && 'word' in action ? action.word : undefined;
    refuseLooseValues(site, word);
    const chosen = action && ('action' in action ? action.action : actionOf(action.word, given));
    return { site, trigger: { step, label, fields, nth, action: chosen ?? exit, position: site.position } };
  },
});

/** `action = "input"` needs `input` beside it, and no other value. */
function refuseLooseValues(site: Site, word: Word | undefined): void {
  if (word && word !== 'exit' && !site.has(word))
    site.at('action').refuse(`"${word}" needs \`${word}\``, `write action = { ${word} = ${samples[word]} }`);
  for (const key of ['input', 'signal', 'advance_clock', 'move_main'])
    if (site.has(key) && site.has('action') && key !== word)
      site.at(key).object({ message: `\`${key}\` does not go with this action`, atKey: true });
}

const samples = { input: '"y"', signal: '"SIGINT"', advance_clock: '"1h"', move_main: '"<commit>"' } as const;
