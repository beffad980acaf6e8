import { numbersPattern, pathsPattern, patterns, wordsPattern } from '../../cases/snapshot/normalise.ts';
import { type KnownValues, runIdsIn, shaResolver } from './known-values.ts';
import { steadyColumns } from './steady-columns.ts';

interface Rule {
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

function rulesFor(text: string, known: KnownValues): readonly Rule[] {
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
