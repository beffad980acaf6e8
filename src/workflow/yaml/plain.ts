import { type Alias, isAlias, isMap, isScalar, isSeq, type Node, type Pair } from 'yaml';
import type { Json } from '../../core/json.ts';

/** Something in a document that JSON cannot say. */
interface PlainFault {
  readonly node: Node;
  readonly message: string;
  readonly hint?: string | undefined;
}

interface Plain {
  readonly value: Json;
  readonly faults: readonly PlainFault[];
  /** What each `*alias` stands for. */
  readonly targets: ReadonlyMap<Alias, Node>;
}

/** A few lines of aliases can stand for billions of values. */
const maxSize = 200_000;

/** The value of a document as JSON, aliases filled in. Never throws. */
export function toPlain(root: Node | null): Plain {
  const converter = new Converter();
  const { value } = root ? converter.convert(root) : { value: null };
  return { value, faults: converter.faults, targets: converter.targets };
}

interface Sized {
  readonly value: Json;
  readonly size: number;
}

const nothing: Sized = { value: null, size: 1 };

class Converter {
  readonly faults: PlainFault[] = [];
  readonly targets = new Map<Alias, Node>();
  readonly #anchors = new Map<string, Node>();
  /** Only anchored nodes: nothing else is asked for twice. `undefined` while one is being converted. */
  readonly #anchored = new Map<Node, Sized | undefined>();
  #total = 0;

  convert(node: Node): Sized {
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

  #content(node: Node): Sized {
    if (isScalar(node)) return { value: this.#scalar(node, node.value), size: 1 };
    if (isSeq(node)) {
      const items = node.items.map(item => (isNode(item) ? this.convert(item) : nothing));
      return { value: items.map(item => item.value), size: sizeOf(items) };
    }
    if (!isMap(node)) return nothing;
    const fields = node.items.map(pair => this.#pair(pair)).filter(field => field !== undefined);
    return {
      value: Object.fromEntries(fields.map(({ key, field }) => [key, field.value])),
      size: sizeOf(fields.map(f => f.field)),
    };
  }

  #scalar(node: Node, value: unknown): Json {
    if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    return this.#fault(node, `${String(value)} is not a value that JSON knows`, 'put it in quotes');
  }

  #pair({ key, value }: Pair) {
    const name = keyText(key);
    if (name === undefined) {
      if (isNode(key)) this.#fault(key, 'a key must be plain text');
      return undefined;
    }
    return { key: name, field: isNode(value) ? this.convert(value) : nothing };
  }

  #alias(alias: Alias): Sized {
    const target = this.#anchors.get(alias.source);
    if (!target) {
      this.#fault(alias, `nothing before this is marked \`&${alias.source}\``);
      return nothing;
    }
    const sized = this.#anchored.get(target);
    if (!sized) {
      this.#fault(alias, `\`*${alias.source}\` stands inside of what it names`);
      return nothing;
    }
    this.#total += sized.size;
    if (this.#total > maxSize) {
      if (this.#total - sized.size <= maxSize)
        this.#fault(alias, 'the aliases of this file stand for too many values');
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

const sizeOf = (parts: readonly Sized[]): number => parts.reduce((sum, part) => sum + part.size, 1);

const isNode = (value: unknown): value is Node =>
  isAlias(value) || isScalar(value) || isSeq(value) || isMap(value);

/** A key as text; `undefined` if it is empty, a list, a map or an alias. */
export function keyText(key: unknown): string | undefined {
  if (!isScalar(key) || key.value === null) return undefined;
  return typeof key.value === 'string' ? key.value : (key.source ?? String(key.value));
}
