/** Values of a run that are recognised wherever they stand. */
export interface KnownValues {
  /** Folders: the one named `repo` becomes `<PATH:repo>`. A folder with two spellings is listed twice. */
  readonly paths?: readonly { readonly name: string; readonly path: string }[] | undefined;
  readonly runIds?: readonly string[] | undefined;
  /** Whole ones; their short forms are recognised by them. */
  readonly shas?: readonly string[] | undefined;
  readonly ports?: readonly number[] | undefined;
  readonly hosts?: readonly string[] | undefined;
}

const runId = '[2-9bcdfghjkmnpqrstvwxz]{10}';
const runIdPlaces = new RegExp(
  `\\b[Rr]un (${runId})\\b|\\breprise [a-z]+ (${runId})\\b|\\breprise/[^\\s/]+/(${runId})/|\\bruns?/(${runId})\\b|"run(?:Id|_id)?"\\s*:\\s*"(${runId})"`,
  'g',
);

/** The run ids that are known, and those that stand where only a run id does. */
export function runIdsIn(text: string, known: readonly string[]): readonly string[] {
  const found = [...text.matchAll(runIdPlaces)].flatMap(([, ...groups]) => groups.filter(Boolean));
  return [...new Set([...known, ...found.filter(id => id !== undefined)])].filter(id => id !== '');
}

const hexWord = /(?<!\w)[0-9a-f]{7,64}(?!\w)/g;
const isWhole = (word: string): boolean => word.length === 40 || word.length === 64;
const mixesDigitsAndLetters = (word: string): boolean => /\d/.test(word) && /[a-f]/.test(word);

/**
 * Tells for a word of hexadecimal digits which SHA it stands for: the longest known one that begins with it.
 * `undefined` for a word that may as well be prose or a number: `deadbeef`, `1234567`.
 */
export function shaResolver(text: string, known: readonly string[]): (word: string) => string | undefined {
  const words = text.match(hexWord) ?? [];
  const shas = [
    ...new Set([...known, ...words.filter(word => isWhole(word) || mixesDigitsAndLetters(word))]),
  ];
  const longestFirst = shas.toSorted((a, b) => b.length - a.length || (a < b ? -1 : 1));
  const resolved = new Map<string, string | undefined>();
  return word => {
    if (!resolved.has(word))
      resolved.set(
        word,
        longestFirst.find(sha => sha.startsWith(word)),
      );
    return resolved.get(word);
  };
}
