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
  type Rule,
  text,
  truth,
  wholeFrom,
} from '../../core/schema.ts';
import {
  invalidLine,
  linesOf,
  parseHeader,
  parseLine,
  type SourceFile,
} from '../../effects/recording/json-lines.ts';
import { faultKinds } from '../manifest/manifest.ts';
import type { Crash } from './crashes.ts';
import type { Fault } from './faults.ts';

/** A schedule that broke something, kept so that it is played for ever after. */
export interface Race {
  readonly case: string;
  /** The kind of the failure, in a few words. */
  readonly what: string;
  /** What happened, in a sentence. */
  readonly message: string;
  /** How it was found. */
  readonly policy: string;
  readonly seed: number;
  /** Whether time stood still while somebody could go on. */
  readonly isCalm: boolean;
  readonly crashes: readonly Crash[];
  readonly faults: readonly Fault[];
  /** Whose turn it was: one entry for each move. */
  readonly turns: readonly Turn[];
}

export interface Turn {
  readonly lane: string;
  readonly op: string;
}

export interface RaceFile extends Race {
  /** Without `.score`. */
  readonly name: string;
  /** For messages. */
  readonly displayFile: string;
}

const raceFormat = 1;

/** Equal races give equal bytes. */
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

/** Moves of one lane that come right after each other are one line. */
function stretchesOf(turns: readonly Turn[]): readonly { lane: string; op: string | string[] }[] {
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

const ops: Rule = {
  expected: 'a text, or a list of texts',
  holds: value => isName(value) || names.holds(value),
};
const turnFields = fields({ lane: name, op: ops });

/** Throws TAPE_INVALID with the line, or REPLAY_DIVERGED if it is of another format. */
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
  const turns: Turn[] = [];
  for (const line of linesOf(source).slice(1)) {
    const value = parseLine(source.file, line);
    const problem = firstProblem(turnFields, value);
    if (problem !== undefined) throw invalidLine(source.file, line.line, problem);
    for (const op of [value['op'] as string | string[]].flat())
      turns.push({ lane: String(value['lane']), op });
  }
  return { ...(header as unknown as Omit<Race, 'turns'>), turns };
}

/** The races that were kept of a case, by name. */
export function racesOf(caseFolder: string, cwd: string): readonly RaceFile[] {
  const folder = racesFolder(caseFolder);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter(file => file.endsWith('.score'))
    .sort()
    .map(file => {
      const path = join(folder, file);
      const displayFile = relative(cwd, path);
      const race = parseRace({ file: displayFile, text: readFileSync(path, 'utf8') });
      return { ...race, name: file.slice(0, -'.score'.length), displayFile };
    });
}

/** Keeps a race under a name of its own, or under that of the same one if it is there already. Gives the path. */
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

/** Where schedules of a case are kept that broke something. */
export const racesFolder = (caseFolder: string): string => join(caseFolder, 'races');

export const hasRaces = (caseFolder: string): boolean => existsSync(racesFolder(caseFolder));
