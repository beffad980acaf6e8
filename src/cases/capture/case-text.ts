import type { RecordedEntry } from '../../effects/recording/recording.ts';
import type { DefinitionFiles } from '../../project/journal/run-journal.ts';
import type { CaseBase, CaseClaim, CaseSignal } from '../manifest/manifest.ts';
import { exitCodeOfSignal, signalOfReason } from '../perform/step-io.ts';
import { type CutLeg, effectOf } from './legs.ts';
import type { Move } from './worker.ts';

export interface CapturedCase {
  readonly description: string;
  readonly legs: readonly CutLeg[];
  readonly base: CaseBase | undefined;
  readonly files: DefinitionFiles;
  /** What others did with tasks before. */
  readonly claims?: readonly CaseClaim[] | undefined;
  /** What others did to the branch meanwhile. */
  readonly moves?: readonly Move[] | undefined;
}

/** The file of a captured case. */
export function caseText(captured: CapturedCase): string {
  const { description, legs, base, files, claims = [], moves = [] } = captured;
  const [only, ...more] = legs;
  const steps =
    only && more.length === 0
      ? ['[run]', ...fieldsOf(only, { isAlone: true }).map(([name, value]) => `${name} = ${value}`)]
      : [
          '[multi]',
          'steps = [',
          ...legs.map(leg => `  ${inlineTable(fieldsOf(leg, { isAlone: false }))},`),
          ']',
        ];
  const triggers = [
    ...moves.map(move => triggerLines(move, `move_main = ${quoted(move.commit)}`)),
    ...legs
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
  { step, label, nth }: Pick<Move, 'step' | 'label' | 'nth'>,
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

type Field = readonly [name: string, value: string];

function fieldsOf(leg: CutLeg, { isAlone }: { readonly isAlone: boolean }): readonly Field[] {
  const { step, command, args, killedAfter } = leg;
  const exit = exitOf(leg);
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

const inlineTable = (fields: readonly Field[]): string =>
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

/** JSON is TOML here, but for one character. */
const quoted = (text: string): string => JSON.stringify(text).replaceAll('\u007f', '\\u007f');

/** As people would write it, if nothing in it has to be escaped. */
const multiline = (text: string): string =>
  text.includes('\n') && !/'''|'$|[^\t\n\u0020-\u007e\u0080-\u{10ffff}]/u.test(text)
    ? `'''\n${text}'''`
    : quoted(text);

/** That a process was told to stop, and what it was doing then. */
interface Interruption {
  readonly step: string;
  readonly signal: CaseSignal;
  /** The effect that it had reached; `nth` counts from 1. */
  readonly label: string;
  readonly nth: number;
}

function interruptionOf({ step, entries, killedAfter }: CutLeg): Interruption | undefined {
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

/** So that a new recording is interrupted in the same situation. */
const isWork = ({ op }: RecordedEntry): boolean =>
  /^(session\.next|shell\.run|function\.next)\.begin$/.test(op);

/** What the shell was told. */
function exitOf(leg: CutLeg): number | undefined {
  const { exit } = leg;
  if (exit === undefined || exit === 0) return exit;
  const interruption = interruptionOf(leg);
  return interruption ? exitCodeOfSignal(interruption.signal) : exit;
}
