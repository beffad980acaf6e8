import {
  type Alias,
  type CST,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  Parser,
  parseDocument,
  visit,
  type YAMLError,
  type YAMLMap,
} from 'yaml';
import type { Json, Position } from '../../../core/index.ts';
import { LineIndex, type ProblemList } from './problem-list.ts';

/**
 * The parser is recursive. If the stack runs out inside a regular expression, the process aborts and nothing can
 * catch that. So files that are nested deeper than this never reach the parser.
 */
const maxDepth = 100;

/** Returns true if collections are nested too deeply to parse. */
export const isTooDeep = (text: string): boolean => mayBeDeep(text) && depthOf(text) > maxDepth;

/** A cheap first check with false positives, because scripts contain brackets and dashes too. */
function mayBeDeep(text: string): boolean {
  let open = 0;
  let leading = 0;
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    if (sign === '[' || sign === '{') open++;
    else if ((sign === ']' || sign === '}') && open > 0) open--;
    if (sign === '\n') leading = 0;
    else if (leading !== -1)
      leading = sign === ' ' || sign === '-' || sign === '?' || sign === '\t' ? leading + 1 : -1;
    if (open > maxDepth || leading > maxDepth) return true;
  }
  return false;
}

/** Measures the depth on the tokens, without recursion. */
function depthOf(text: string): number {
  let deepest = 0;
  const pending: { readonly token: CST.Token; readonly depth: number }[] = [];
  for (const token of new Parser().parse(text)) {
    pending.push({ token, depth: 0 });
    for (let next = pending.pop(); next; next = pending.pop()) {
      const depth = next.depth + 1;
      deepest = Math.max(deepest, depth);
      for (const inner of tokensIn(next.token)) pending.push({ token: inner, depth });
    }
  }
  return deepest;
}

function tokensIn(token: CST.Token): readonly CST.Token[] {
  if (token.type === 'document') return token.value ? [token.value] : [];
  if (!('items' in token)) return [];
  return token.items.flatMap(({ key, value }: CST.CollectionItem) =>
    [key, value].filter(inner => inner !== undefined && inner !== null),
  );
}

/** A value that JSON cannot represent. */
interface PlainFault {
  readonly node: Node;
  readonly message: string;
  readonly hint?: string | undefined;
}

interface PlainValue {
  readonly value: Json;
  readonly faults: readonly PlainFault[];
  /** Target of each `*alias`. */
  readonly targets: ReadonlyMap<Alias, Node>;
}

/** Limit on expanded values, because a few lines of aliases can expand to billions. */
const maxSize = 200_000;

/** Converts a document to JSON and expands aliases. Never throws. */
function toPlain(root: Node | null): PlainValue {
  const converter = new Converter();
  const { value } = root ? converter.convert(root) : { value: null };
  return { value, faults: converter.faults, targets: converter.targets };
}

interface SizedValue {
  readonly value: Json;
  readonly size: number;
}

const nothing: SizedValue = { value: null, size: 1 };

class Converter {
  readonly faults: PlainFault[] = [];
  readonly targets = new Map<Alias, Node>();
  readonly #anchors = new Map<string, Node>();
  /** Values of anchored nodes, the only ones that are read twice. `undefined` while a node is being converted. */
  readonly #anchored = new Map<Node, SizedValue | undefined>();
  #total = 0;

  convert(node: Node): SizedValue {
    if (isAlias(node)) return this.#alias(node);
    const anchor = 'anchor' in node ? node.anchor : undefined;
    if (anchor !== undefined) {
      this.#anchors.set(anchor, node);
      this.#anchored.set(node, undefined);
    }
    const sized = this.#content(node);
    if (anchor !== undefined) this.#anchored.set(node, sized);
    return sized;
  }

  #content(node: Node): SizedValue {
    if (isScalar(node)) return { value: this.#scalar(node, node.value), size: 1 };
    if (isSeq(node)) {
      const items = node.items.map(item => (isNode(item) ? this.convert(item) : nothing));
      return { value: items.map(item => item.value), size: sizeOf(items) };
    }
    if (!isMap(node)) return nothing;
    this.#checkKeys(node.items);
    const fields = node.items.map(pair => this.#pair(pair)).filter(field => field !== undefined);
    return {
      value: Object.fromEntries(fields.map(({ key, field }) => [key, field.value])),
      size: sizeOf(fields.map(f => f.field)),
    };
  }

  /** The parser would compare every key with every other one. */
  #checkKeys(pairs: readonly Pair[]): void {
    const seen = new Set<string>();
    for (const { key } of pairs) {
      const name = keyText(key);
      if (name !== undefined && seen.has(name) && isNode(key))
        this.#fault(key, `duplicate key \`${name}\``, 'remove one of them');
      if (name !== undefined) seen.add(name);
    }
  }

  #scalar(node: Node, value: unknown): Json {
    if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    return this.#fault(node, `${String(value)} is not a valid JSON value`, 'put it in quotes');
  }

  #pair({ key, value }: Pair) {
    const name = keyText(key);
    if (name === undefined) {
      if (isNode(key)) this.#fault(key, 'a key must be plain text');
      return undefined;
    }
    if (name === '__proto__' && isNode(key)) {
      // The schemas ignore this key, so its value would be lost without a word.
      this.#fault(key, '`__proto__` cannot be a key', 'choose another name');
      return undefined;
    }
    return { key: name, field: isNode(value) ? this.convert(value) : nothing };
  }

  #alias(alias: Alias): SizedValue {
    const target = this.#anchors.get(alias.source);
    if (!target) {
      this.#fault(alias, `unknown alias: no anchor \`&${alias.source}\` comes before it`);
      return nothing;
    }
    const sized = this.#anchored.get(target);
    if (!sized) {
      this.#fault(alias, `alias \`*${alias.source}\` refers to itself`);
      return nothing;
    }
    this.#total += sized.size;
    if (this.#total > maxSize) {
      if (this.#total - sized.size <= maxSize)
        this.#fault(alias, 'the aliases in this file expand to too many values');
      return nothing;
    }
    this.targets.set(alias, target);
    return sized;
  }

  #fault(node: Node, message: string, hint?: string): null {
    this.faults.push({ node, message, hint });
    return null;
  }
}

const sizeOf = (parts: readonly SizedValue[]): number => parts.reduce((sum, part) => sum + part.size, 1);

const isNode = (value: unknown): value is Node =>
  isAlias(value) || isScalar(value) || isSeq(value) || isMap(value);

/** Returns a key as text, or `undefined` if it is empty, a list, a map or an alias. */
export function keyText(key: unknown): string | undefined {
  if (!isScalar(key) || key.value === null) return undefined;
  return typeof key.value === 'string' ? key.value : (key.source ?? String(key.value));
}

/** Keys and indexes that lead to a value of a document. */
export type Path = readonly (string | number)[];

/** Offsets in the file. The end is exclusive. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** A YAML syntax error, or a value that JSON cannot represent. */
interface SyntaxFault extends Range {
  readonly message: string;
  readonly hint?: string | undefined;
}

/** A file, and the list that its problems are added to. */
export interface ProblemContext {
  readonly source: YamlSource;
  readonly problems: ProblemList;
}

/** A parsed YAML file that maps paths of its value back to offsets in the text. */
export class YamlSource {
  readonly file: string;
  readonly displayFile: string;
  readonly text: string;
  readonly value: Json;
  /** False if the file has syntax errors. `value` is then `null`. */
  readonly isReadable: boolean;
  readonly faults: readonly SyntaxFault[];
  readonly #root: Node | null;
  readonly #targets: ReadonlyMap<Alias, Node>;
  readonly #pairs = new WeakMap<YAMLMap, ReadonlyMap<string | undefined, Pair>>();
  #lines: LineIndex | undefined;

  /** Never throws: errors are in `faults`. */
  constructor({
    file,
    displayFile = file,
    text,
  }: { file: string; displayFile?: string | undefined; text: string }) {
    this.file = file;
    this.displayFile = displayFile;
    this.text = text;
    const { root, errors } = parse(text);
    this.isReadable = !errors.some(isSyntaxError);
    const plain = toPlain(this.isReadable ? root : null);
    this.#root = root;
    this.#targets = plain.targets;
    this.value = plain.value;
    this.faults = [
      ...withoutEchoes(errors).map(explain),
      ...plain.faults.map(({ node, message, hint }) => ({ ...rangeOf(node), message, hint })),
    ];
  }

  get lines(): LineIndex {
    this.#lines ??= new LineIndex(this.text);
    return this.#lines;
  }

  positionOf(offset: number): Position {
    return { file: this.displayFile, ...this.lines.at(offset) };
  }

  /** Returns the range of the value at a path, or of the nearest parent that exists. */
  rangeOf(path: Path): Range {
    const node = this.nodeAt(path);
    const range = node && rangeOf(node);
    if (range && range.end > range.start) return range;
    return path.length > 0 ? this.keyRangeOf(path) : { start: 0, end: 0 };
  }

  /** Returns the range of the last key of a path. For an item of a list, the range of the item. */
  keyRangeOf(path: Path): Range {
    const parent = this.nodeAt(path.slice(0, -1));
    const key = path.at(-1);
    const pair = isMap(parent) ? this.#pairOf(parent, String(key)) : undefined;
    if (isScalar(pair?.key)) return rangeOf(pair.key);
    const item = this.nodeAt(path);
    if (item && rangeOf(item).end > rangeOf(item).start) return rangeOf(item);
    return this.rangeOf(path.slice(0, -1));
  }

  nodeAt(path: Path): Node | undefined {
    let node: unknown = this.#root;
    for (const key of path) {
      const container = this.#follow(node);
      if (isSeq(container) && typeof key === 'number') node = container.items[key];
      else if (isMap(container)) node = this.#pairOf(container, String(key))?.value;
      else return undefined;
    }
    return this.#follow(node);
  }

  /** Returns the last pair with a key. A file may have a problem at each of thousands of keys. */
  #pairOf(map: YAMLMap, key: string): Pair | undefined {
    let pairs = this.#pairs.get(map);
    if (!pairs) {
      pairs = new Map(map.items.map(pair => [keyText(pair.key), pair]));
      this.#pairs.set(map, pairs);
    }
    return pairs.get(key);
  }

  #follow(node: unknown): Node | undefined {
    if (isAlias(node)) return this.#targets.get(node) ?? node;
    return isMap(node) || isSeq(node) || isScalar(node) ? node : undefined;
  }
}

const rangeOf = (node: Node): Range => ({ start: node.range?.[0] ?? 0, end: node.range?.[1] ?? 0 });

type YamlObjection = Pick<YAMLError, 'code' | 'message' | 'pos'>;

function parse(text: string): { readonly root: Node | null; readonly errors: readonly YamlObjection[] } {
  if (isTooDeep(text)) {
    return { root: null, errors: [{ code: 'IMPOSSIBLE', message: 'it is nested too deeply', pos: [0, 1] }] };
  }
  const document = parseDocument(text, {
    prettyErrors: false,
    schema: 'core',
    logLevel: 'error',
    uniqueKeys: false,
  });
  const errors = document.errors.map(error => (isOpenQuote(error) ? atOpening(error, document) : error));
  return { root: document.contents, errors: [...errors, ...document.warnings] };
}

const isOpenQuote = ({ code, message }: YamlObjection): boolean =>
  code === 'MISSING_CHAR' && /^Missing closing ["']quote/.test(message);

/** Moves an unclosed-quote error to the opening quote. The parser reports it at the end of the quoted text. */
function atOpening(error: YamlObjection, document: Document): YamlObjection {
  const [noticedAt] = error.pos;
  let start: number | undefined;
  visit(document, {
    Scalar: (_, { range }) => {
      if (range?.[1] !== noticedAt) return undefined;
      start = range[0];
      return visit.BREAK;
    },
  });
  const { code } = error;
  return start === undefined ? error : { code, message: error.message, pos: [start, start + 1] };
}

const isSyntaxError = ({ code }: YamlObjection): boolean => code !== 'TAG_RESOLVE_FAILED';

/** Keeps only the first syntax error, because the ones after it are usually consequences. */
function withoutEchoes(errors: readonly YamlObjection[]): readonly YamlObjection[] {
  let found = false;
  return errors.filter(error => {
    if (!isSyntaxError(error)) return true;
    const first = !found;
    found = true;
    return first;
  });
}

function explain({ code, message, pos: [start, end] }: YamlObjection): SyntaxFault {
  switch (code) {
    case 'TAB_AS_INDENT':
      return { message: 'YAML does not allow tabs for indentation', hint: 'use spaces', start, end };
    case 'MULTIPLE_DOCS':
      return {
        message: 'the file contains more than one YAML document',
        hint: 'remove everything from this `---` on',
        start,
        end,
      };
    case 'MISSING_CHAR':
      if (!isOpenQuote({ code, message, pos: [start, end] })) return notYaml(message, { start, end });
      return {
        message: 'this quote is never closed',
        hint: 'add the same quote at the end of the text',
        start,
        end,
      };
    case 'TAG_RESOLVE_FAILED':
      return { message: 'YAML tags (`!...`) are not supported', start, end };
    default:
      return notYaml(message, { start, end });
  }
}

const notYaml = (message: string, range: Range): SyntaxFault => ({
  message: `not valid YAML: ${lowerFirst(message)}`,
  hint: hintFor(message),
  ...range,
});

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);

function hintFor(message: string): string | undefined {
  if (/compact mappings|Implicit keys/i.test(message))
    return 'put text that contains `: ` in quotes, or use a `|` block';
  if (/flow-(map|seq)-start/i.test(message))
    return 'inside `{ }` or `[ ]`, put text that contains `${{ }}` in quotes, or write the map over several lines';
  if (/block collection|same column|indent/i.test(message))
    return 'check the indentation of this line and the one before it';
  return undefined;
}
