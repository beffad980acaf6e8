import { displayWidth } from '../../terminal/index.ts';
import { safeOutput } from '../../view/index.ts';

interface NormaliseRule {
  readonly pattern: string | undefined;
  readonly placeholder: (match: string) => string;
}

/**
 * The text with a placeholder for all that differs between two recordings of the same thing: `<SHA:2>` is the second
 * SHA that appears, long or short. Known values go before patterns. Doing it twice changes nothing.
 */
export function normaliseSnapshot(text: string, known: KnownValues = {}): string {
  const rules = rulesFor(text, known).filter(({ pattern }) => pattern !== undefined);
  const all = new RegExp(rules.map(({ pattern }) => `(${pattern})`).join('|'), 'gm');
  const replaced = text.replace(all, (match: string, ...groups: readonly unknown[]) => {
    const index = groups.findIndex(group => group !== undefined);
    return rules[index]?.placeholder(match) ?? match;
  });
  return steadyColumns(replaced);
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

/** The match may be spelled as in JSON, or begin with `/private`. */
function nameOf(match: string, names: ReadonlyMap<string, string>): string {
  for (const [path, name] of names) {
    const spellings = [path, JSON.stringify(path).slice(1, -1)];
    if (spellings.some(spelling => match === spelling || match === `/private${spelling}`)) return name;
  }
  return 'unknown';
}

/** Numbers values of a kind in the order in which they appear; goes on after numbers that stand in the text. */
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
 * What changes from one recording to the next, by its form. Each pattern begins and ends where no letter or digit
 * goes on, so that what has been replaced never makes its neighbour look different.
 */
const any = (...sources: readonly string[]): string => `(?:${sources.join('|')})`;
const begins = '(?<![\\w./-])';
const ends = '(?!\\w)';
/** The value of a JSON field with such a name, also inside of a text that is JSON itself. */
const fieldValue = (key: string): string => `(?<=\\\\?"${key}\\\\?" ?: ?)`;
const number = '\\d+(?:\\.\\d+)?(?:e-?\\d+)?';

const zone = '(?: ?Z| ?[+-]\\d\\d:?\\d\\d)?';
const day = '\\d{4}-\\d\\d-\\d\\d';
const clock = '\\d\\d:\\d\\d(?::\\d\\d(?:[.,]\\d+)?)?';
const weekday = any('Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun');
const month = any('Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec');

const placeholder = '<(?:SHA|UUID|RUN|PORT|PATH|SECRET):[\\w.-]+>|<(?:TIME|DURATION|COST|PID|TOKENS|HOST)>';

const atPathStart = `(?:(?<=\\\\[bfnrt])|(?<![\\w.~-]|${placeholder}))`;
/** A word that goes on after a full stop, or what was put in its place. */
const goesOn = '\\.(?:\\w|<[A-Z]+)';
const atPathEnd = `(?![\\w-]|${goesOn})`;

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

  /** How a list says that something is younger than a second. */
  justNow: '(?<=^| {2})just now(?= {2}|$)',
} as const;

/** A text that is to be found as it is, as the source of a pattern. */
const literal = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&');

const oneOf = (texts: readonly string[]): string | undefined =>
  texts.length === 0 ? undefined : any(...texts.toSorted((a, b) => b.length - a.length).map(literal));

/** Folders, the longest first, also as they stand in JSON. */
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
  return source && `${begins}${source}(?!\\w|${goesOn})`;
}

/** Values of a run that are recognised wherever they stand. */
interface KnownValues {
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
function runIdsIn(text: string, known: readonly string[]): readonly string[] {
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

/** The blanks before a cell of a table whose width was that of a duration or a cost. */
const beforeUnsteadyCell = /(?<=\S) {2,}(?=(?:>= |took )?<(?:DURATION|COST)>(?: ago)?(?: {2,}|$))/;

/**
 * A table is laid out for the values that it had before they were replaced: `9.9s` and `10.0s` move all that comes
 * after them. From such a column on, cells are two blanks apart.
 */
function steadyColumns(text: string): string {
  const lines = text.split('\n');
  let start = 0;
  const steady: string[] = [];
  for (let end = 0; end <= lines.length; end++) {
    if (end < lines.length && lines[end] !== '') continue;
    steady.push(...steadyTable(lines.slice(start, end)), ...lines.slice(end, end + 1));
    start = end + 1;
  }
  return steady.join('\n');
}

function steadyTable(lines: readonly string[]): readonly string[] {
  const widths = lines.flatMap(line => {
    const gap = beforeUnsteadyCell.exec(line);
    return gap ? [displayWidth(line.slice(0, gap.index))] : [];
  });
  if (widths.length === 0) return lines;
  const column = widths.reduce((widest, width) => Math.max(widest, width), 0);
  return lines.map(line => {
    const gap = beforeUnsteadyCell.exec(line) ?? gapAcross(line, column);
    if (!gap) return line;
    const before = line.slice(0, gap.index);
    const after = line.slice(gap.index + gap[0].length).replace(/(?<=\S) {2,}/g, '  ');
    return `${before}${' '.repeat(Math.max(0, column - displayWidth(before)))}  ${after}`;
  });
}

/** Where a row has nothing in the column that is not steady. */
function gapAcross(line: string, column: number): RegExpExecArray | undefined {
  for (const gap of line.matchAll(/(?<=\S) {2,}(?=\S)/g)) {
    if (displayWidth(line.slice(0, gap.index + gap[0].length)) > column) return gap;
  }
  return undefined;
}

/**
 * What somebody reads who looks at the output of a step: without escape sequences and blanks at the ends of lines; of a
 * line that was written over and over, what it was at last; no empty lines at the end.
 */
export function outputLines(output: string): readonly string[] {
  const lines = output.split('\n').map(safeOutput);
  return lines.slice(0, lines.findLastIndex(line => line !== '') + 1);
}
