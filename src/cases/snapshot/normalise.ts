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

export const patterns = {
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
export function pathsPattern(paths: readonly string[]): string | undefined {
  const spellings = paths.flatMap(path => [path, JSON.stringify(path).slice(1, -1)]);
  const source = oneOf([...new Set(spellings)].filter(path => path.length > 1));
  return source && `${atPathStart}(?:/private)?${source}${atPathEnd}`;
}

export function wordsPattern(words: readonly string[]): string | undefined {
  const source = oneOf(words.filter(word => word !== ''));
  return source && `(?<![\\dA-Za-z])${source}(?![\\dA-Za-z])`;
}

export function numbersPattern(numbers: readonly number[]): string | undefined {
  const source = oneOf(numbers.map(String));
  return source && `${begins}${source}(?!\\w|${goesOn})`;
}
