import type { Json, JsonObject } from '../../core/index.ts';
import { commitId, duration } from './fields.ts';
import { caseSignals, type Trigger, type TriggerAction } from './manifest.ts';
import {
  anyText,
  byKind,
  described,
  kindOf,
  mapOf,
  mapped,
  oneOf,
  optional,
  refuseKind,
  required,
  type TableField,
  type TomlReader,
  type TomlSite,
  table,
  text,
  truth,
  type ValuesOf,
  whole,
} from './reader.ts';

const actionWords = ['exit', 'input', 'signal', 'advance_clock', 'move_main'] as const;

type ActionWord = (typeof actionWords)[number];

const exit: TriggerAction = { kind: 'exit' };

const values = {
  input: optional(described(anyText, 'Text to type on standard input.')),
  signal: optional(described(oneOf(caseSignals), 'Signal to send to the command.')),
  advance_clock: optional(described(duration, 'Duration by which the clock moves forward.')),
  move_main: optional(
    described(commitId, 'Commit that another process moves main, or the branch of [base], to.'),
  ),
} as const satisfies Readonly<Record<string, TableField<unknown>>>;

function actionOf(
  word: ActionWord,
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

/** An action in the file: its name, with the value in a separate key, or a table with both. */
type WrittenAction = { readonly word: ActionWord } | { readonly action: TriggerAction };

const inTable: TomlReader<WrittenAction> = table({
  fields: {
    exit: optional(described(truth, '`true`: the command is asked to stop, without a signal.')),
    ...values,
  },
  build: (given, site, hasUnknownKeys) => {
    const [word, ...more] = actionWords.filter(key => site.has(key));
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

const written: TomlReader<WrittenAction> = byKind({
  text: mapped(oneOf(actionWords), word => ({ word })),
  table: inTable,
});

const anyJson: TomlReader<Json> = {
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

function jsonTable(): TomlReader<JsonObject> {
  return mapOf(anyJson);
}

/** A trigger with its position, which later checks report problems at. */
export interface ParsedTrigger {
  readonly trigger: Trigger;
  readonly site: TomlSite;
}

export const trigger: TomlReader<ParsedTrigger> = table({
  fields: {
    step: required(described(text, 'Name of a command of the case.'), ''),
    label: required(described(text, 'Name of the effect on the tape.'), ''),
    fields: optional(
      described(jsonTable(), 'Arguments that the effect must have. Other arguments are ignored.'),
      {},
    ),
    nth: optional(described(whole(1), 'Index of the matching effect, counted from 1. Defaults to 1.'), 1),
    action: required<WrittenAction | undefined>(
      described(written, 'Action: its name, with the value in the key of that name, or a table with both.'),
      undefined,
    ),
    ...values,
  },
  build: ({ step, label, fields, nth, action, ...given }, site) => {
    const word = action && 'word' in action ? action.word : undefined;
    checkActionKeys(site, word);
    const chosen = action && ('action' in action ? action.action : actionOf(action.word, given));
    return { site, trigger: { step, label, fields, nth, action: chosen ?? exit, position: site.position } };
  },
});

/** Checks that `action = "input"` comes with the key `input`, and with no key of another action. */
function checkActionKeys(site: TomlSite, word: ActionWord | undefined): void {
  if (word && word !== 'exit' && !site.has(word))
    site.at('action').refuse(`"${word}" needs \`${word}\``, `write action = { ${word} = ${samples[word]} }`);
  for (const key of ['input', 'signal', 'advance_clock', 'move_main'])
    if (site.has(key) && site.has('action') && key !== word)
      site.at(key).object({ message: `\`${key}\` is not allowed with this action`, atKey: true });
}

const samples = { input: '"y"', signal: '"SIGINT"', advance_clock: '"1h"', move_main: '"<commit>"' } as const;
