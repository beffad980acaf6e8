import { hintForDots } from '../../cases/manifest/fields.ts';
import type { Expectation, ExpectedFile } from '../../cases/manifest/manifest.ts';
import {
  anyText,
  byKind,
  described,
  listOf,
  mapOf,
  mapped,
  type Reader,
  text,
  truth,
  whole,
} from '../../cases/manifest/reader.ts';
import { checkPathKey } from './paths.ts';
import { patternOf } from './pattern.ts';
import { optional, table } from './table.ts';

const pattern: Reader<string> = mapped(text, (written, site) => {
  try {
    patternOf(written);
    return written;
  } catch (error) {
    site.refuse(
      `is no regular expression: ${reasonOf(error)}`,
      'a text that does not begin and end with / is searched for as it is',
    );
    return undefined;
  }
});

/** Engines differ in how they begin the message. */
const reasonOf = (error: unknown): string =>
  (/[^:]*$/.exec(error instanceof Error ? error.message : '')?.[0] ?? '').trim();

const fileState: Reader<ExpectedFile> = table({
  fields: {
    contains: optional(described(text, 'A text that the file must hold.')),
    absent: optional(described(truth, '`true`: there must be no such file.')),
  },
  build: ({ contains, absent }, site, hasUnknownKeys) => {
    if (site.has('contains') === site.has('absent')) {
      if (!hasUnknownKeys)
        site.refuse(
          'needs either `contains` or `absent`',
          'write "the whole content", { contains = "a part" } or { absent = true }',
        );
      return undefined;
    }
    if (contains !== undefined) return { kind: 'contains', text: contains };
    if (absent === false)
      site.at('absent').refuse('must be true', 'leave the file out to expect nothing of it');
    return { kind: 'absent' };
  },
});

const stateUnlessDotted: Reader<ExpectedFile> = {
  schema: fileState.schema,
  read: site => {
    const hint = site.has('contains') || site.has('absent') ? undefined : hintForDots(site);
    if (hint === undefined) return fileState.read(site);
    site.refuse('needs either `contains` or `absent`', hint);
    return undefined;
  },
};

const expectedFile: Reader<ExpectedFile> = byKind({
  text: mapped(anyText, content => ({ kind: 'exact', content })),
  table: stateUnlessDotted,
});

export const nothingExpected: Expectation = {
  exit: undefined,
  files: {},
  main: undefined,
  output: [],
  notOutput: [],
};

export const expectation: Reader<Expectation> = table({
  fields: {
    exit: optional(
      described(whole(0, 255), 'The exit code: 0 unless it is set, but in a `worker_test` any.'),
    ),
    files: optional(
      described(
        mapOf(expectedFile, checkPathKey),
        'Files by path in the test repository: a text is the whole content.',
      ),
      {},
    ),
    main: optional(described(listOf(text), 'The subjects of all commits on the main branch, oldest first.')),
    output: optional(
      described(patterns(), 'What the step prints: a text, or a regular expression between slashes.'),
      [],
    ),
    not_output: optional(described(patterns(), 'What it does not print.'), []),
  },
  build: ({ not_output: notOutput, ...rest }) => ({ ...rest, notOutput }),
  hintFor: key => (Object.hasOwn(meant, key) ? `write \`${meant[key]}\`` : undefined),
});

function patterns(): Reader<readonly string[]> {
  return byKind({ list: listOf(pattern), text: mapped(pattern, written => [written]) });
}

const meant: Readonly<Record<string, string>> = {
  exit_code: 'exit',
  code: 'exit',
  log: 'main',
  stdout: 'output',
  stderr: 'output',
  contains: 'output',
};
