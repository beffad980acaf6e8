import { RepriseError } from '../../core/errors.ts';
import { fitting, invalid, type PlacedLine, readLines } from '../../effects/recording/json-lines.ts';
import { decodeSession } from './decode.ts';
import { putTextsBack, type ReadBlob } from './long-texts.ts';
import { headerSchema } from './schemas.ts';
import { type SessionFile, sessionFormat } from './session-file.ts';
import { decodeShell } from './shell-decoder.ts';
import { parseWritten } from './written-session.ts';

/**
 * Reads the file of a session: one that was recorded, whose first line is a header, or one that was written by hand.
 * `readBlob` is needed for one that is in a case. Throws TAPE_INVALID with file and line, and REPLAY_DIVERGED for a format of another version.
 */
export function parseSessionFile(file: string, text: string, readBlob?: ReadBlob): SessionFile {
  const lines = readLines(file, text, { tornEnd: looksRecorded(text) });
  const [first] = lines;
  if (!first) throw invalid({ file, number: 1 }, 'is empty');
  if (!('format' in first.value)) return parseWritten(file, lines);
  checkFormat(first);
  const [, ...rest] = putTextsBack(lines, readBlob);
  const header = fitting(headerSchema, first.value, first);
  return header.kind === 'session' ? decodeSession(file, header, rest) : decodeShell(file, header, rest);
}

/** A recording may end in the middle of a line, if the process was killed. */
const looksRecorded = (text: string): boolean => /^\s*\{\s*"format"/.test(text);

function checkFormat({ file, number, value }: PlacedLine): void {
  if (value['format'] === sessionFormat) return;
  throw new RepriseError(
    'REPLAY_DIVERGED',
    `${file}:${number} has format ${JSON.stringify(value['format'])}, and this version of Reprise reads format ${sessionFormat}`,
    {
      hint: 'record the case again, or use the version of Reprise that recorded it',
      position: { file, line: number, column: 1 },
    },
  );
}
