import { parseDuration } from '../../core/time.ts';
import { splitArguments } from '../../testing/manifest/arguments.ts';
import type { Site } from '../../testing/manifest/site.ts';
import type { Texts } from './manifest.ts';
import {
  anyText,
  byKind,
  describe,
  kindOf,
  listOf,
  mapOf,
  mapped,
  positive,
  type Reader,
  text,
  textOf,
} from './reader.ts';

/** The name of a step: it is part of file names and of the names of lanes. */
export const stepName: Reader<string> = textOf(
  /^[A-Za-z0-9_-]+$/,
  'must consist of letters, digits, - and _',
);

/** Milliseconds, from a text such as `1m30s` or a number of seconds. */
export const duration: Reader<number> = byKind({
  text: mapped(text, (written, site) => {
    const ms = parseDuration(written);
    if (ms !== undefined && ms > 0) return ms;
    site.refuse(`must be a duration, not ${describe(written)}`, 'write it like "30s", "1m30s" or "250ms"');
    return undefined;
  }),
  number: mapped(positive, seconds => seconds * 1000),
});

/** All of it: what a shorter one names depends on what else there is. */
export const commitId: Reader<string> = textOf(
  /^([0-9a-f]{40}|[0-9a-f]{64})$/,
  'must be the whole id of a commit',
);

/** A list, or one text that is split as a shell would, without expanding anything. */
export const argumentList: Reader<readonly string[]> = byKind({
  list: listOf(anyText),
  text: mapped(anyText, (written, site) => {
    const words = splitArguments(written);
    if (!words) site.refuse('has a quote or a backslash with nothing after it', 'close it, or write a list');
    return words;
  }),
});

/** Keys of the case that, below a [table], become entries of that table. */
const caseWide = ['description', 'show_thinking', 'model', 'fidelity', 'live', 'timeline'];

/** `README.md = "..."` without quotes is the key `md` in a table `README`. */
export function hintForDots(site: Site): string | undefined {
  const [inner] = Object.keys(site.value as object);
  if (inner === undefined || /^[[{]/.test(site.written)) return undefined;
  return `put the name in quotes: "${site.path.at(-1)}.${inner}" = ...`;
}

const quotedKeys: Reader<string> = {
  schema: anyText.schema,
  read: site => {
    const key = String(site.path.at(-1));
    if (kindOf(site.value) === 'table') {
      site.refuse('must be a text, not a table', hintForDots(site));
      return undefined;
    }
    if (caseWide.includes(key) && !site.hasQuotedKey) {
      site.object({
        message: `\`${key}\` stands inside of a table here`,
        hint: `move it to the top of the file, before the first [table]; if it is a name, put it in quotes: "${key}"`,
        atKey: true,
      });
      return undefined;
    }
    return anyText.read(site);
  },
};

/** Texts by names of the author's own, such as paths. */
export const textsByName = (checkName: (name: string, site: Site) => void): Reader<Texts> =>
  mapOf(quotedKeys, checkName);

export const environment: Reader<Texts> = textsByName((name, site) => {
  if (name === '' || /[=\0]/.test(name))
    site.object({ message: `\`${name}\` cannot be the name of a variable`, atKey: true });
});

export const hintForCaseWide = (key: string): string | undefined =>
  [...caseWide, 'env', 'files', 'scripts', 'triggers', 'claims'].includes(key)
    ? `\`${key}\` belongs to the whole case: move it to the top of the file, before the first [table]`
    : undefined;
