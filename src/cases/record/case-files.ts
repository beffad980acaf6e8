import { createHash } from 'node:crypto';
import { RepriseError } from '../../core/errors.ts';
import { invalidLine, placeText } from '../../effects/recording/json-lines.ts';
import { type RecordedEntry, type Recording, topLane } from '../../effects/recording/recording.ts';
import {
  type ParsedScore,
  parseScore,
  type ScoreHeader,
  scoreFileName,
  writeScore,
} from '../../effects/recording/score-file.ts';
import {
  type ParsedTape,
  parseTape,
  type TapeEntry,
  type TapeHeader,
  tapeFileName,
  writeTape,
} from '../../effects/recording/tape-file.ts';

/** Texts by file name, relative to the folder of the case. */
export type CaseFiles = Readonly<Record<string, string>>;

export interface ToCaseFilesOptions {
  readonly case: string;
  readonly recording: Recording;
  /** Versions and time of the recording. */
  readonly made: Omit<TapeHeader, 'case' | 'step'>;
  readonly main: ScoreHeader['main'];
  /** SHA-256 of what else was recorded (sessions, blobs), by path in the folder of the case. */
  readonly files?: Readonly<Record<string, string>> | undefined;
  /** Steps that have a tape even if nothing is on it. */
  readonly steps?: readonly string[] | undefined;
}

/** Takes order and content apart: one tape a lane at the top, and one score. */
export function toCaseFiles(options: ToCaseFilesOptions): CaseFiles {
  const { case: caseName, recording, made, main, files = {}, steps = [] } = options;
  const ofStep = new Map<string, TapeEntry[]>(steps.map(step => [step, []]));
  for (const { n: _, lane, ...entry } of recording.entries) {
    const step = topLane(lane);
    const tape = ofStep.get(step) ?? [];
    ofStep.set(step, tape);
    tape.push({ ...entry, lane: lane.slice(step.length + 1) });
  }
  const tapes = Object.fromEntries(
    [...ofStep].map(([step, entries]) => [
      tapeFileName(caseName, step),
      writeTape({ header: { ...made, case: caseName, step }, entries }),
    ]),
  );
  const hashes = Object.fromEntries(Object.entries(tapes).map(([name, text]) => [name, sha256(text)]));
  const score = writeScore({
    header: { case: caseName, witness: recording.witness, main, files: { ...files, ...hashes } },
    entries: recording.entries,
  });
  return { ...tapes, [scoreFileName(caseName)]: score };
}

export const sha256 = (content: string | Uint8Array): string =>
  createHash('sha256').update(content).digest('hex');

export interface FromCaseFilesOptions {
  readonly case: string;
  /** The score and all tapes of the case. */
  readonly files: CaseFiles;
  /** SHA-256 of the other recorded files that are there; they are not looked at unless it is given. */
  readonly others?: Readonly<Record<string, string>> | undefined;
  /** How a file is to be called in messages. */
  readonly display?: ((file: string) => string) | undefined;
}

export interface CaseRecording extends Recording {
  readonly score: ScoreHeader;
  readonly tapes: ReadonlyMap<string, TapeHeader>;
  /** `x__worker_a.vcr:12`: where an entry is, for messages. */
  readonly placeOf: (entry: { readonly lane: string; readonly i: number }) => string | undefined;
}

/**
 * Joins order and content again. Throws TAPE_INVALID, with the line, for whatever does not fit together, and
 * REPLAY_DIVERGED for files of another format.
 */
export function fromCaseFiles(options: FromCaseFilesOptions): CaseRecording {
  const { case: caseName, files, display = file => file } = options;
  const scoreName = scoreFileName(caseName);
  const scoreText = files[scoreName];
  if (scoreText === undefined) throw missing(display(scoreName), caseName);
  const score = parseScore({ file: display(scoreName), text: scoreText });
  const recorded = score.header.files;
  checkPresence(recorded, options);
  const tapes = Object.entries(files)
    .filter(([name]) => name !== scoreName)
    .map(
      ([name, text]): NamedTape => ({
        name,
        file: display(name),
        ...parseTape({ file: display(name), text }),
      }),
    );
  const joined = join(score, { scoreFile: display(scoreName), tapes, caseName });
  checkHashes(recorded, options);
  const places = placesOf(tapes);
  return {
    entries: joined,
    witness: score.header.witness,
    score: score.header,
    tapes: new Map(tapes.map(({ header }) => [header.step, header])),
    placeOf: ({ lane, i }) => places.get(`${lane}:${i}`)?.place,
  };
}

interface NamedTape extends ParsedTape {
  readonly name: string;
  readonly file: string;
}

interface Placed {
  readonly place: string;
  readonly file: string;
  readonly line: number;
  readonly entry: TapeEntry;
}

function placesOf(tapes: readonly NamedTape[]): Map<string, Placed> {
  const places = new Map<string, Placed>();
  for (const { file, header, entries, lines } of tapes) {
    for (const [at, entry] of entries.entries()) {
      const line = lines[at] ?? 0;
      const lane = entry.lane === '' ? header.step : `${header.step}/${entry.lane}`;
      places.set(`${lane}:${entry.i}`, { place: placeText(file, line), file, line, entry });
    }
  }
  return places;
}

interface Parts {
  readonly scoreFile: string;
  readonly tapes: readonly NamedTape[];
  readonly caseName: string;
}

function join(score: ParsedScore, { scoreFile, tapes, caseName }: Parts): readonly RecordedEntry[] {
  for (const { name, file, header } of tapes) {
    if (header.case !== caseName || name !== tapeFileName(caseName, header.step)) {
      throw invalidLine(file, 1, `the tape says that it is of case "${header.case}", step "${header.step}"`);
    }
  }
  const left = placesOf(tapes);
  const entries = score.entries.map(({ n, lane, i, op }, at): RecordedEntry => {
    const found = left.get(`${lane}:${i}`);
    const line = score.lines[at] ?? 0;
    if (!found) throw invalidLine(scoreFile, line, `entry ${i} of lane "${lane}" (${op}) is on no tape`);
    if (found.entry.op !== op) {
      throw invalidLine(
        scoreFile,
        line,
        `the score says ${op}, and the tape ${found.place} says ${found.entry.op}`,
      );
    }
    left.delete(`${lane}:${i}`);
    return { ...found.entry, n, lane };
  });
  for (const { file, line, entry } of left.values()) {
    throw invalidLine(file, line, `${entry.op} is not on the score ${scoreFile}`);
  }
  return entries;
}

/** Orphans are refused too: nobody would ever look at them. */
function checkPresence(recorded: ScoreHeader['files'], options: FromCaseFilesOptions): void {
  const { case: caseName, others, display = file => file } = options;
  const found = hashesOf(options);
  for (const name of Object.keys(recorded)) {
    const isLookedAt = others !== undefined || name.endsWith('.vcr');
    if (isLookedAt && !found.has(name)) throw missing(display(name), caseName);
  }
  for (const name of found.keys()) {
    if (!Object.hasOwn(recorded, name)) {
      throw unfit(`${display(name)} belongs to no recording: the score does not know it`, caseName);
    }
  }
}

function checkHashes(recorded: ScoreHeader['files'], options: FromCaseFilesOptions): void {
  const { case: caseName, display = file => file } = options;
  for (const [name, hash] of hashesOf(options)) {
    if (recorded[name] !== hash) throw unfit(`${display(name)} was changed after it was recorded`, caseName);
  }
}

function hashesOf({ case: caseName, files, others = {} }: FromCaseFilesOptions): ReadonlyMap<string, string> {
  const tapes = Object.entries(files).filter(([name]) => name !== scoreFileName(caseName));
  return new Map([...tapes.map(([name, text]) => [name, sha256(text)] as const), ...Object.entries(others)]);
}

const missing = (file: string, caseName: string) => unfit(`${file} is missing`, caseName);

const unfit = (what: string, caseName: string) =>
  new RepriseError('TAPE_INVALID', what, { hint: `record the case: reprise test ${caseName} --record` });
