import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import {
  fields,
  firstProblem,
  isName,
  list,
  map,
  name,
  names,
  oneOf,
  type SchemaRule,
  text,
  truth,
  wholeFrom,
} from '../../core/index.ts';
import { readRecordedText } from '../../effects/index.ts';
import {
  invalidLine,
  linesOf,
  parseHeader,
  parseLine,
  type SourceFile,
} from '../../effects/recording/index.ts';
import { faultKinds } from '../manifest/manifest.ts';
import type { Crash } from './crashes.ts';
import type { Fault } from './faults.ts';

/** A failing schedule, saved as a regression test. */
export interface Race {
  readonly case: string;
  /** Name of the broken rule. */
  readonly what: string;
  /** Description of the failure, in one sentence. */
  readonly message: string;
  /** Name of the policy or source that found it. */
  readonly policy: string;
  readonly seed: number;
  /** Whether time only passes while all lanes wait. */
  readonly isCalm: boolean;
  readonly crashes: readonly Crash[];
  readonly faults: readonly Fault[];
  /** Moves in order. */
  readonly turns: readonly RaceMove[];
}

export interface RaceMove {
  readonly lane: string;
  readonly op: string;
}

export interface RaceFile extends Race {
  /** File name without `.score`. */
  readonly name: string;
  /** Path for messages. */
  readonly displayFile: string;
}

const raceFormat = 1;

/** Renders a race file. Equal races give equal bytes. */
export function writeRace({ turns, crashes, faults, ...race }: Race): string {
  const { what, message, policy, seed, isCalm } = race;
  const header = {
    format: raceFormat,
    kind: 'race',
    case: race.case,
    what,
    message,
    policy,
    seed,
    isCalm,
    crashes: crashes.map(({ step, after }) => ({ step, after })),
    faults: faults.map(({ kind, step, nth }) => ({ kind, step, nth })),
  };
  return `${[header, ...stretchesOf(turns)].map(line => JSON.stringify(line)).join('\n')}\n`;
}

/** Groups consecutive moves of one lane into one line. */
function stretchesOf(turns: readonly RaceMove[]): readonly { lane: string; op: string | string[] }[] {
  const stretches: { lane: string; op: string[] }[] = [];
  for (const { lane, op } of turns) {
    const last = stretches.at(-1);
    if (last?.lane === lane) last.op.push(op);
    else stretches.push({ lane, op: [op] });
  }
  return stretches.map(({ lane, op }) => ({ lane, op: op.length === 1 ? (op[0] ?? '') : op }));
}

const headerFields = fields({
  format: wholeFrom(1),
  kind: text,
  case: text,
  what: name,
  message: text,
  policy: text,
  seed: wholeFrom(0),
  isCalm: truth,
  crashes: list(map(fields({ step: name, after: wholeFrom(1) }))),
  faults: list(map(fields({ kind: oneOf(...faultKinds), step: name, nth: wholeFrom(1) }))),
});

const ops: SchemaRule = {
  expected: 'a string or a list of strings',
  holds: value => isName(value) || names.holds(value),
};
const moveFields = fields({ lane: name, op: ops });

/** Parses a race file. Throws TAPE_INVALID with the line, or REPLAY_DIVERGED for another format version. */
export function parseRace(source: SourceFile): Race {
  const {
    format: _format,
    kind: _kind,
    ...header
  } = parseHeader(source, {
    kind: 'race',
    versions: { format: raceFormat },
    again: ({ case: of }) => `reprise explore ${String(of)}`,
    known: headerFields,
  });
  const turns: RaceMove[] = [];
  for (const line of linesOf(source).slice(1)) {
    const value = parseLine(source.file, line);
    const problem = firstProblem(moveFields, value);
    if (problem !== undefined) throw invalidLine(source.file, line.line, problem);
    for (const op of [value['op'] as string | string[]].flat())
      turns.push({ lane: String(value['lane']), op });
  }
  return { ...(header as unknown as Omit<Race, 'turns'>), turns };
}

/** Reads the saved races of a case, sorted by file name. Throws as `parseRace` does. */
export function racesOf(caseFolder: string, cwd: string): readonly RaceFile[] {
  const folder = racesFolder(caseFolder);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter(file => file.endsWith('.score'))
    .sort()
    .map(file => {
      const path = join(folder, file);
      const displayFile = relative(cwd, path);
      const race = parseRace({ file: displayFile, text: readRecordedText({ file: path, displayFile }) });
      return { ...race, name: file.slice(0, -'.score'.length), displayFile };
    });
}

/** Saves a race under a free name, unless the same race is already saved. Returns the path. */
export function keepRace(caseFolder: string, race: Race): string {
  const folder = racesFolder(caseFolder);
  mkdirSync(folder, { recursive: true });
  const content = writeRace(race);
  const stem = race.what
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
  for (let number = 1; ; number++) {
    const file = join(folder, `${stem}${number === 1 ? '' : `-${number}`}.score`);
    if (existsSync(file) && readFileSync(file, 'utf8') !== content) continue;
    writeFileSync(file, content);
    return file;
  }
}

/** Folder of the saved races of a case. */
export const racesFolder = (caseFolder: string): string => join(caseFolder, 'races');

export const hasRaces = (caseFolder: string): boolean => existsSync(racesFolder(caseFolder));
