import { displayWidth } from '../../terminal/index.ts';
import { safeOutput } from '../../view/index.ts';

interface NormaliseRule {
  readonly pattern: string | undefined;
  readonly placeholder: (match: string) => string;
}

/**
 * Replaces all values that differ between two recordings of the same case with placeholders: `<SHA:2>` is the second
 * SHA that appears, full or abbreviated. Known values take precedence over patterns. Idempotent.
 */
export function normaliseSnapshot(text: string, known: KnownValues = {}): string {
  const rules = rulesFor(text, known).filter(({ pattern }) => pattern !== undefined);
  const all = new RegExp(rules.map(({ pattern }) => `(${pattern})`).join('|'), 'gm');
  const replaced = text.replace(all, (match: string, ...groups: readonly unknown[]) => {
    const index = groups.findIndex(group => group !== undefined);
    return rules[index]?.placeholder(match) ?? match;
  });
  return stableColumns(replaced);
}

function rulesFor(text: string, known: KnownValues): readonly NormaliseRule[] {
  const { paths = [], ports = [], hosts = [] } = known;
  const names = namesByPath(paths);
  const numbered = numbering(text);
  const shaOf = shaResolver(text, known.shas ?? []);
  const always = (placeholder: string) => () => placeholder;
  const port = (match: string) => numbered('PORT', match);
  return [
    { pattern: patterns.placeholder, placeholder: match => match },
    { pattern: pathsPattern([...names.keys()]), placeholder: match => `<PATH:${nameOf(match, names)}>` },
    { pattern: patterns.folder, placeholder: match => numbered('PATH', match.replace(/^\/private/, '')) },
    { pattern: patterns.uuid, placeholder: match => numbered('UUID', match.toLowerCase()) },
    {
      pattern: wordsPattern(runIdsIn(text, known.runIds ?? [])),
      placeholder: match => numbered('RUN', match),
    },
    { pattern: patterns.time, placeholder: always('<TIME>') },
    { pattern: patterns.pid, placeholder: always('<PID>') },
    { pattern: patterns.host, placeholder: always('<HOST>') },
    { pattern: patterns.port, placeholder: port },
    { pattern: patterns.cost, placeholder: always('<COST>') },
    { pattern: patterns.tokens, placeholder: always('<TOKENS>') },
    { pattern: patterns.duration, placeholder: always('<DURATION>') },
    { pattern: patterns.justNow, placeholder: always('<DURATION> ago') },
    { pattern: numbersPattern(ports), placeholder: port },
    { pattern: wordsPattern(hosts), placeholder: always('<HOST>') },
    {
      pattern: patterns.sha,
      placeholder: word => {
        const sha = shaOf(word);
        return sha === undefined ? word : numbered('SHA', sha);
      },
    },
  ];
}

const withoutSlash = (path: string): string => path.replace(/\/+$/, '');

const namesByPath = (paths: NonNullable<KnownValues['paths']>): ReadonlyMap<string, string> =>
  new Map(paths.map(({ name, path }) => [withoutSlash(path), name]));

/** Returns the name of a matched path, which may be escaped as in JSON or start with `/private`. */
function nameOf(match: string, names: ReadonlyMap<string, string>): string {
  for (const [path, name] of names) {
    const spellings = [path, JSON.stringify(path).slice(1, -1)];
    if (spellings.some(spelling => match === spelling || match === `/private${spelling}`)) return name;
  }
  return 'unknown';
}

/** Numbers the values of each kind in order of appearance, starting after the numbers that are already in the text. */
function numbering(text: string): (kind: string, value: string) => string {
  const last = new Map<string, number>();
  for (const [, kind = '', number] of text.matchAll(/<(SHA|UUID|RUN|PORT|PATH):(\d+)>/g))
    last.set(kind, Math.max(last.get(kind) ?? 0, Number(number)));
  const placeholders = new Map<string, string>();
  return (kind, value) => {
    const key = `${kind}:${value}`;
    const known = placeholders.get(key);
    if (known !== undefined) return known;
    const next = (last.get(kind) ?? 0) + 1;
    last.set(kind, next);
    const placeholder = `<${kind}:${next}>`;
    placeholders.set(key, placeholder);
    return placeholder;
  };
}

/**
 * Patterns of values that differ between recordings. Each pattern starts and ends at a word boundary, so that a
 * replacement never affects whether its neighbour matches.
 */
const any = (...sources: readonly string[]): string => `(?:${sources.join('|')})`;
const begins = '(?<![\\w./-])';
const ends = '(?!\\w)';
/** Matches the value of a JSON field, including escaped JSON inside of a string. */
const fieldValue = (key: string): string => `(?<=\\\\?"${key}\\\\?" ?: ?)`;
const number = '\\d+(?:\\.\\d+)?(?:e-?\\d+)?';

const zone = '(?: ?Z| ?[+-]\\d\\d:?\\d\\d)?';
const day = '\\d{4}-\\d\\d-\\d\\d';
const clock = '\\d\\d:\\d\\d(?::\\d\\d(?:[.,]\\d+)?)?';
const weekday = any('Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun');
const month = any('Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec');

const placeholder = '<(?:SHA|UUID|RUN|PORT|PATH|SECRET):[\\w.-]+>|<(?:TIME|DURATION|COST|PID|TOKENS|HOST)>';

const atPathStart = `(?:(?<=\\\\[bfnrt])|(?<![\\w.~-]|${placeholder}))`;
/** Matches a word that continues after a full stop, or a placeholder for it. */
const continuation = '\\.(?:\\w|<[A-Z]+)';
const atPathEnd = `(?![\\w-]|${continuation})`;

const amount = '\\d{1,3}(?:\\.\\d+)?';
const millis = '\\d+(?:\\.\\d+)? ?(?:ms|µs|us|ns)';
const spelled = `\\d+(?:\\.\\d+)? (?:milli|micro)?(?:seconds?|secs?|minutes?|mins?|hours?|hrs?)`;
const compound = `${amount}(?:h ?\\d{1,2}m(?: ?\\d{1,2}(?:\\.\\d+)?s)?|m ?\\d{1,2}(?:\\.\\d+)?s|[smh])`;

const patterns = {
  placeholder,

  folder: any(
    `${atPathStart}(?:/private)?/(?:tmp|var/tmp|var/folders/[\\w+]+/[\\w+]+/T)/[\\w.+@-]*\\w${ends}`,
    `${atPathStart}/(?:home|Users)/[\\w.-]*\\w${ends}`,
    `${atPathStart}/root${atPathEnd}`,
  ),

  time: any(
    `(?<![\\w.-])${day}(?:[T ]${clock}${zone})?(?![\\w-])`,
    `(?<!\\w)${weekday},? ${month} +\\d{1,2} ${clock} \\d{4}${zone}${ends}`,
    `(?<![\\w.:/-])\\d{1,2}:[0-5]\\d:[0-5]\\d(?:[.,]\\d{1,9})?(?: ?[AaPp][Mm])?(?![\\w:])`,
    `(?<![\\w.:/-])\\d{1,2}:[0-5]\\d ?[AaPp][Mm]${ends}`,
    // Milliseconds since the epoch, from 2017 to 2033.
    `(?<![\\w.-])1[5-9]\\d{11}(?![\\w.])`,
  ),

  uuid: '(?<![\\dA-Za-z])[\\da-fA-F]{8}(?:-[\\da-fA-F]{4}){3}-[\\da-fA-F]{12}(?![\\dA-Za-z])',

  sha: `(?<!\\w)[0-9a-f]{7,64}${ends}`,

  pid: any(
    `(?<=(?<![A-Za-z])(?:process|pid|PID|Pid)(?: |: ?|=))\\d{1,7}(?:, \\d{1,7})*${ends}`,
    `${fieldValue('pid')}\\d{1,7}${ends}`,
  ),

  host: `(?<=(?<!\\w)process \\d{1,7} on )[\\w.-]*\\w${ends}`,

  port: any(
    `(?<=(?:localhost|127\\.0\\.0\\.1|0\\.0\\.0\\.0|\\[::1?\\]):)\\d{2,5}${ends}`,
    `(?<=(?<![A-Za-z])(?:port|PORT|Port|ports|PORTS|Ports)(?: |: ?|=))\\d{2,5}(?:-\\d{2,5})?${ends}`,
    `${fieldValue('port')}\\d{2,5}${ends}`,
  ),

  cost: any(
    `\\$\\d[\\d,]*\\.\\d{2,}${ends}`,
    `${begins}\\d+\\.\\d+(?= USD\\b)`,
    `${fieldValue('\\w*[Cc]ost(?:_usd|Usd|USD)?')}${number}(?![\\w.])`,
  ),

  tokens: any(
    `${begins}\\d[\\d,]*(?:\\.\\d+)?[kM]?(?= tokens?\\b)`,
    `${fieldValue('\\w*[Tt]okens')}\\d+${ends}`,
  ),

  duration: any(
    `${begins}${any(millis, spelled, compound)}${ends}`,
    `${begins}\\d+ days?(?= ago\\b)`,
    `${fieldValue('\\w*(?:Ms|_ms)')}${number}(?![\\w.])`,
  ),

  /** Age of less than a second, as lists print it. */
  justNow: '(?<=^| {2})just now(?= {2}|$)',
} as const;

/** Escapes a string for use in a pattern. */
const literal = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&');

const oneOf = (texts: readonly string[]): string | undefined =>
  texts.length === 0 ? undefined : any(...texts.toSorted((a, b) => b.length - a.length).map(literal));

/** Matches folders, longest first, including their form in JSON. */
function pathsPattern(paths: readonly string[]): string | undefined {
  const spellings = paths.flatMap(path => [path, JSON.stringify(path).slice(1, -1)]);
  const source = oneOf([...new Set(spellings)].filter(path => path.length > 1));
  return source && `${atPathStart}(?:/private)?${source}${atPathEnd}`;
}

function wordsPattern(words: readonly string[]): string | undefined {
  const source = oneOf(words.filter(word => word !== ''));
  return source && `(?<![\\dA-Za-z])${source}(?![\\dA-Za-z])`;
}

function numbersPattern(numbers: readonly number[]): string | undefined {
  const source = oneOf(numbers.map(String));
  return source && `${begins}${source}(?!\\w|${continuation})`;
}

/** Values of a run that are replaced wherever they occur. */
interface KnownValues {
  /** Folders. The one named `repo` becomes `<PATH:repo>`. A folder with two spellings is listed twice. */
  readonly paths?: readonly { readonly name: string; readonly path: string }[] | undefined;
  readonly runIds?: readonly string[] | undefined;
  /** Full SHAs, by which abbreviated ones are resolved. */
  readonly shas?: readonly string[] | undefined;
  readonly ports?: readonly number[] | undefined;
  readonly hosts?: readonly string[] | undefined;
}

const runId = '[2-9bcdfghjkmnpqrstvwxz]{10}';
const runIdPlaces = new RegExp(
  `\\b[Rr]un (${runId})\\b|\\breprise [a-z]+ (${runId})\\b|\\breprise/[^\\s/]+/(${runId})/|\\bruns?/(${runId})\\b|"run(?:Id|_id)?"\\s*:\\s*"(${runId})"`,
  'g',
);

/** Returns known run ids and those at positions that only run ids have. */
function runIdsIn(text: string, known: readonly string[]): readonly string[] {
  const found = [...text.matchAll(runIdPlaces)].flatMap(([, ...groups]) => groups.filter(Boolean));
  return [...new Set([...known, ...found.filter(id => id !== undefined)])].filter(id => id !== '');
}

const hexWord = /(?<!\w)[0-9a-f]{7,64}(?!\w)/g;
const isWhole = (word: string): boolean => word.length === 40 || word.length === 64;
const mixesDigitsAndLetters = (word: string): boolean => /\d/.test(word) && /[a-f]/.test(word);

/**
 * Resolves a hexadecimal word to the longest known SHA that starts with it. Returns `undefined` for a word that could
 * also be prose or a number: `deadbeef`, `1234567`.
 */
function shaResolver(text: string, known: readonly string[]): (word: string) => string | undefined {
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

/** Matches the spaces before a table cell whose width depends on a duration or a cost. */
const beforeVariableCell = /(?<=\S) {2,}(?=(?:>= |took )?<(?:DURATION|COST)>(?: ago)?(?: {2,}|$))/;

/**
 * Makes the layout of tables independent of replaced values: `9.9s` and `10.0s` shift all columns after them. Starting
 * with such a column, cells are two spaces apart.
 */
function stableColumns(text: string): string {
  const lines = text.split('\n');
  let start = 0;
  const stable: string[] = [];
  for (let end = 0; end <= lines.length; end++) {
    if (end < lines.length && lines[end] !== '') continue;
    stable.push(...stableTable(lines.slice(start, end)), ...lines.slice(end, end + 1));
    start = end + 1;
  }
  return stable.join('\n');
}

function stableTable(lines: readonly string[]): readonly string[] {
  const widths = lines.flatMap(line => {
    const gap = beforeVariableCell.exec(line);
    return gap ? [displayWidth(line.slice(0, gap.index))] : [];
  });
  if (widths.length === 0) return lines;
  const column = widths.reduce((widest, width) => Math.max(widest, width), 0);
  return lines.map(line => {
    const gap = beforeVariableCell.exec(line) ?? gapAcross(line, column);
    if (!gap) return line;
    const before = line.slice(0, gap.index);
    const after = line.slice(gap.index + gap[0].length).replace(/(?<=\S) {2,}/g, '  ');
    return `${before}${' '.repeat(Math.max(0, column - displayWidth(before)))}  ${after}`;
  });
}

/** Returns the gap of a row without a cell in the variable column. */
function gapAcross(line: string, column: number): RegExpExecArray | undefined {
  for (const gap of line.matchAll(/(?<=\S) {2,}(?=\S)/g)) {
    if (displayWidth(line.slice(0, gap.index + gap[0].length)) > column) return gap;
  }
  return undefined;
}

/**
 * Returns the output of a command as a person sees it: without escape sequences, trailing spaces and trailing empty
 * lines. Of a line that was overwritten, only the final text remains.
 */
export function outputLines(output: string): readonly string[] {
  const lines = output.split('\n').map(safeOutput);
  return lines.slice(0, lines.findLastIndex(line => line !== '') + 1);
}
