import { createHash } from 'node:crypto';
import { RepriseError } from '../../core/index.ts';
import {
  invalidLine,
  type ParsedScore,
  type ParsedTape,
  parseScore,
  parseTape,
  placeText,
  type RecordedEntry,
  type Recording,
  type ScoreHeader,
  scoreFileName,
  type TapeEntry,
  type TapeHeader,
  tapeFileName,
  topLane,
  writeScore,
  writeTape,
} from '../../effects/recording/index.ts';
import { withStatePlace } from '../../effects/redact/index.ts';

/** File contents by path relative to the case folder. */
export type CaseFiles = Readonly<Record<string, string>>;

export interface ToCaseFilesOptions {
  readonly case: string;
  readonly recording: Recording;
  /** Versions and time of the recording. */
  readonly made: Omit<TapeHeader, 'case' | 'step'>;
  readonly main: ScoreHeader['main'];
  /** SHA-256 of the other recorded files (sessions, blobs), by path in the case folder. */
  readonly files?: Readonly<Record<string, string>> | undefined;
  /** Commands that get a tape even if it is empty. */
  readonly steps?: readonly string[] | undefined;
}

/** Splits a recording into content and order: one tape per command, and one score. */
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
  /** Score and tapes of the case. */
  readonly files: CaseFiles;
  /** SHA-256 of the other recorded files that exist. Without it, these files are not checked. */
  readonly others?: Readonly<Record<string, string>> | undefined;
  /** Returns the path of a file for messages. Defaults to its name. */
  readonly display?: ((file: string) => string) | undefined;
}

export interface CaseRecording extends Recording {
  readonly score: ScoreHeader;
  readonly tapes: ReadonlyMap<string, TapeHeader>;
  /** Returns the position of an entry for messages, such as `x__worker_a.vcr:12`. */
  readonly placeOf: (entry: { readonly lane: string; readonly i: number }) => string | undefined;
}

/**
 * Joins tapes and score to a recording. Throws TAPE_INVALID, with the line, if they are inconsistent, and
 * REPLAY_DIVERGED for files of another format version.
 */
export function fromCaseFiles(options: FromCaseFilesOptions): CaseRecording {
  const { case: caseName, files, display = file => file } = options;
  const scoreName = scoreFileName(caseName);
  const scoreText = files[scoreName];
  if (scoreText === undefined) throw missing(display(scoreName), caseName);
  const score = parseScore({ file: display(scoreName), text: withStatePlace(scoreText) });
  const recorded = score.header.files;
  checkPresence(recorded, options);
  const tapes = Object.entries(files)
    .filter(([name]) => name !== scoreName)
    .map(
      ([name, text]): NamedTape => ({
        name,
        file: display(name),
        ...parseTape({ file: display(name), text: withStatePlace(text) }),
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

interface PlacedEntry {
  readonly place: string;
  readonly file: string;
  readonly line: number;
  readonly entry: TapeEntry;
}

function placesOf(tapes: readonly NamedTape[]): Map<string, PlacedEntry> {
  const places = new Map<string, PlacedEntry>();
  for (const { file, header, entries, lines } of tapes) {
    for (const [at, entry] of entries.entries()) {
      const line = lines[at] ?? 0;
      const lane = entry.lane === '' ? header.step : `${header.step}/${entry.lane}`;
      places.set(`${lane}:${entry.i}`, { place: placeText(file, line), file, line, entry });
    }
  }
  return places;
}

interface CaseParts {
  readonly scoreFile: string;
  readonly tapes: readonly NamedTape[];
  readonly caseName: string;
}

function join(score: ParsedScore, { scoreFile, tapes, caseName }: CaseParts): readonly RecordedEntry[] {
  for (const { name, file, header } of tapes) {
    if (header.case !== caseName || name !== tapeFileName(caseName, header.step)) {
      throw invalidLine(file, 1, `this is the tape of case "${header.case}", command "${header.step}"`);
    }
  }
  const left = placesOf(tapes);
  const entries = score.entries.map(({ n, lane, i, op }, at): RecordedEntry => {
    const found = left.get(`${lane}:${i}`);
    const line = score.lines[at] ?? 0;
    if (!found) throw invalidLine(scoreFile, line, `no tape has entry ${i} of lane "${lane}" (${op})`);
    if (found.entry.op !== op) {
      throw invalidLine(
        scoreFile,
        line,
        `the score has ${op} here, but the tape has ${found.entry.op} (${found.place})`,
      );
    }
    left.delete(`${lane}:${i}`);
    return { ...found.entry, n, lane };
  });
  for (const { file, line, entry } of left.values()) {
    throw invalidLine(file, line, `${entry.op} is missing from the score ${scoreFile}`);
  }
  return entries;
}

/** Refuses missing files, and orphaned ones, which no replay would ever use. */
function checkPresence(recorded: ScoreHeader['files'], options: FromCaseFilesOptions): void {
  const { case: caseName, others, display = file => file } = options;
  const found = hashesOf(options);
  for (const name of Object.keys(recorded)) {
    const isChecked = others !== undefined || name.endsWith('.vcr');
    if (isChecked && !found.has(name)) throw missing(display(name), caseName);
  }
  for (const name of found.keys()) {
    if (!Object.hasOwn(recorded, name)) {
      throw unfit(`${display(name)} is not part of the recording: the score does not list it`, caseName);
    }
  }
}

function checkHashes(recorded: ScoreHeader['files'], options: FromCaseFilesOptions): void {
  const { case: caseName, display = file => file } = options;
  for (const [name, hash] of hashesOf(options)) {
    if (recorded[name] !== hash) throw unfit(`${display(name)} has changed since it was recorded`, caseName);
  }
}

function hashesOf({ case: caseName, files, others = {} }: FromCaseFilesOptions): ReadonlyMap<string, string> {
  const tapes = Object.entries(files).filter(([name]) => name !== scoreFileName(caseName));
  return new Map([...tapes.map(([name, text]) => [name, sha256(text)] as const), ...Object.entries(others)]);
}

const missing = (file: string, caseName: string) => unfit(`${file} is missing`, caseName);

const unfit = (message: string, caseName: string) =>
  new RepriseError('TAPE_INVALID', message, {
    hint: `restore the file from git, or record the case again: reprise test ${caseName} --record`,
  });
