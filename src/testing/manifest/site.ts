import type { Position } from '../../core/errors.ts';
import { isRecord } from '../../core/schema.ts';
import type { ProblemList } from '../../workflow/yaml/source/problem-list.ts';
import type { Path } from '../../workflow/yaml/source/yaml-source.ts';
import type { TomlSource } from './toml-source.ts';

export interface Objection {
  readonly message: string;
  readonly hint?: string | undefined;
  /** Points at the key and not at the value. */
  readonly atKey?: boolean | undefined;
}

/** A value at its place in a case file. */
export class Site {
  readonly value: unknown;
  readonly path: Path;
  readonly #source: TomlSource;
  readonly #problems: ProblemList;

  constructor(source: TomlSource, problems: ProblemList, value: unknown, path: Path = []) {
    this.#source = source;
    this.#problems = problems;
    this.value = value;
    this.path = path;
  }

  at(key: string | number): Site {
    return new Site(this.#source, this.#problems, this.#inner(key), [...this.path, key]);
  }

  has(key: string): boolean {
    return this.#inner(key) !== undefined;
  }

  get position(): Position {
    return this.#source.positionOf(this.#source.range(this.path).start);
  }

  /** Whether the key that the path ends with stands in quotes. */
  get hasQuotedKey(): boolean {
    return /["']/.test(this.#source.text.charAt(this.#source.keyRange(this.path).start));
  }

  /** The value as it stands in the file; of a table below a header, the header, and of dotted keys, the key. */
  get written(): string {
    const { start, end } = this.#source.range(this.path);
    return this.#source.text.slice(start, end);
  }

  /** `what` follows the name of the value: `must be a text`. */
  refuse(what: string, hint?: string): void {
    this.object({ message: `${this.name} ${what}`, hint });
  }

  object({ message, hint, atKey = false }: Objection): void {
    const range = atKey ? this.#source.keyRange(this.path) : this.#source.range(this.path);
    this.#problems.addText(this.#source, [{ ...range, message, hint }]);
  }

  /** The way to the value as a person would say it: `expect.exit`, `args[1]`; what has a place of its own is not numbered. */
  get name(): string {
    const { owner, inner } = this.#split();
    if (inner.length === 0) return owner;
    const joined = inner
      .map((key, index) => (typeof key === 'number' ? `[${key}]` : index === 0 ? key : `.${key}`))
      .join('');
    return `\`${joined}\``;
  }

  #split(): { readonly owner: string; readonly inner: Path } {
    const owner = owners.find(({ table }) => table.every((key, index) => fits(key, this.path[index])));
    return owner
      ? { owner: owner.name, inner: this.path.slice(owner.table.length) }
      : { owner: 'the file', inner: this.path };
  }

  #inner(key: string | number): unknown {
    if (Array.isArray(this.value)) return this.value[Number(key)];
    return isRecord(this.value) && Object.hasOwn(this.value, key) ? this.value[key] : undefined;
  }
}

const anyIndex = Symbol('any index');

const owners = [
  { table: ['multi', 'steps', anyIndex], name: 'a step' },
  { table: ['worker_test', 'workers', anyIndex], name: 'a worker' },
  { table: ['triggers', anyIndex], name: 'a trigger' },
  { table: ['invariants', anyIndex], name: 'an invariant' },
  { table: ['run'], name: '`run`' },
] as const;

const fits = (wanted: string | symbol, key: string | number | undefined): boolean =>
  wanted === anyIndex ? typeof key === 'number' : wanted === key;
