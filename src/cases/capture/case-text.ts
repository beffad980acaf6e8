import type { RecordedEntry } from '../../effects/recording/index.ts';
import type { DefinitionFiles } from '../../project/journal/index.ts';
import type { CaseBase, CaseClaim, CaseSignal } from '../manifest/manifest.ts';
import { exitCodeOfSignal, signalOfReason } from '../perform/step-io.ts';
import { type CutSegment, effectOf } from './segments.ts';
import type { MainMove } from './worker.ts';

export interface CapturedCase {
  readonly description: string;
  readonly segments: readonly CutSegment[];
  readonly base: CaseBase | undefined;
  readonly files: DefinitionFiles;
  /** Claims that other workers had made before the run. */
  readonly claims?: readonly CaseClaim[] | undefined;
  /** Moves of the branch by other processes during the run. */
  readonly moves?: readonly MainMove[] | undefined;
}

/** Renders the TOML file of a captured case. */
export function caseText(captured: CapturedCase): string {
  const { description, segments, base, files, claims = [], moves = [] } = captured;
  const [only, ...more] = segments;
  const steps =
    only && more.length === 0
      ? ['[run]', ...fieldsOf(only, { isAlone: true }).map(([name, value]) => `${name} = ${value}`)]
      : [
          '[multi]',
          'steps = [',
          ...segments.map(segment => `  ${inlineTable(fieldsOf(segment, { isAlone: false }))},`),
          ']',
        ];
  const triggers = [
    ...moves.map(move => triggerLines(move, `move_main = ${quoted(move.commit)}`)),
    ...segments
      .map(interruptionOf)
      .filter(found => found !== undefined)
      .map(found => triggerLines(found, `signal = ${quoted(found.signal)}`)),
  ];
  const sections = [
    [`description = ${quoted(description)}`, 'definitions = "project"'],
    steps,
    ...triggers,
    ...claims.map(claimLines),
    ...(base ? [baseLines(base)] : []),
    ...(Object.keys(files).length > 0 ? [fileLines(files)] : []),
  ];
  return `${sections.map(lines => lines.join('\n')).join('\n\n')}\n`;
}

const triggerLines = (
  { step, label, nth }: Pick<MainMove, 'step' | 'label' | 'nth'>,
  action: string,
): readonly string[] => [
  '[[triggers]]',
  `step = ${quoted(step)}`,
  `label = ${quoted(label)}`,
  ...(nth > 1 ? [`nth = ${nth}`] : []),
  `action = { ${action} }`,
];

const claimLines = ({ task, state, version, by }: CaseClaim): readonly string[] => [
  '[[claims]]',
  `task = ${quoted(task)}`,
  `state = ${quoted(state)}`,
  `version = ${quoted(version)}`,
  `by = ${quoted(by)}`,
];

type TomlField = readonly [name: string, value: string];

function fieldsOf(segment: CutSegment, { isAlone }: { readonly isAlone: boolean }): readonly TomlField[] {
  const { step, command, args, killedAfter } = segment;
  const exit = exitOf(segment);
  return [
    ...(isAlone ? [] : [['name', quoted(step)] as const]),
    ...(isAlone && command === 'run' ? [] : [['command', quoted(command)] as const]),
    ['args', `[${args.map(quoted).join(', ')}]`],
    ...(killedAfter
      ? [['kill_after', `{ effect = ${quoted(killedAfter.effect)}, nth = ${killedAfter.nth} }`] as const]
      : []),
    ...(exit === undefined ? [] : [['expect', `{ exit = ${exit} }`] as const]),
  ];
}

const inlineTable = (fields: readonly TomlField[]): string =>
  `{ ${fields.map(([name, value]) => `${name} = ${value}`).join(', ')} }`;

const baseLines = ({ commit, branch, pack, shallow }: CaseBase): readonly string[] => [
  '[base]',
  `commit = ${quoted(commit)}`,
  `branch = ${quoted(branch)}`,
  `pack = ${quoted(pack)}`,
  ...(shallow.length > 0 ? [`shallow = [${shallow.map(quoted).join(', ')}]`] : []),
];

const fileLines = (files: DefinitionFiles): readonly string[] => [
  '[files]',
  ...Object.entries(files).map(([path, text]) => `${quoted(path)} = ${multiline(text)}`),
];

/** A JSON string is a valid TOML string, except that TOML requires U+007F to be escaped. */
const quoted = (text: string): string => JSON.stringify(text).replaceAll('\u007f', '\\u007f');

/** Uses a multi-line literal string, which is easier to read, unless the text needs escapes. */
const multiline = (text: string): string =>
  text.includes('\n') && !/'''|'$|[^\t\n\u0020-\u007e\u0080-\u{10ffff}]/u.test(text)
    ? `'''\n${text}'''`
    : quoted(text);

/** A signal that stopped a process, and the effect that the process had reached. */
interface Interruption {
  readonly step: string;
  readonly signal: CaseSignal;
  /** Name of the effect. */
  readonly label: string;
  /** Occurrence of the effect in the step, from 1. */
  readonly nth: number;
}

function interruptionOf({ step, entries, killedAfter }: CutSegment): Interruption | undefined {
  if (killedAfter) return undefined;
  const at = entries.findIndex(
    ({ op, outcome }) => op === 'keyboard.interrupt.end' && outcome?.kind === 'ok',
  );
  const outcome = entries[at]?.outcome;
  const signal = outcome?.kind === 'ok' ? signalOfReason(String(outcome.value)) : undefined;
  if (!signal) return undefined;
  const reached = entries.slice(0, at).filter(({ op }) => !op.endsWith('.end'));
  const last = reached.findLast(isWork) ?? reached.at(-1);
  if (!last) return undefined;
  const label = effectOf(last);
  const nth = reached.filter(entry => entry.n <= last.n && effectOf(entry) === label).length;
  return { step, signal, label, nth };
}

/** The trigger is tied to the last unit of work, so that a new recording is interrupted in the same situation. */
const isWork = ({ op }: RecordedEntry): boolean =>
  /^(session\.next|shell\.run|function\.next)\.begin$/.test(op);

/** Exit code that the shell saw. */
function exitOf(segment: CutSegment): number | undefined {
  const { exit } = segment;
  if (exit === undefined || exit === 0) return exit;
  const interruption = interruptionOf(segment);
  return interruption ? exitCodeOfSignal(interruption.signal) : exit;
}
