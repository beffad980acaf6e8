export { hideIn, type Journal, openJournal } from './journal.ts';
export { type ReadJournal, readJournal } from './journal-reader.ts';
export {
  fitting,
  invalid,
  invalidLine,
  linesOf,
  type PlacedLine,
  parseHeader,
  parseLine,
  placeText,
  readLines,
  type SourceFile,
} from './json-lines.ts';
export {
  indexTapes,
  type RecordedEntry,
  type Recording,
  type Tapes,
  topLane,
  witnessOf,
} from './recording.ts';
export { type ParsedScore, parseScore, type ScoreHeader, scoreFileName, writeScore } from './score-file.ts';
export {
  type ParsedTape,
  parseTape,
  type TapeEntry,
  type TapeHeader,
  tapeFileName,
  writeTape,
} from './tape-file.ts';
