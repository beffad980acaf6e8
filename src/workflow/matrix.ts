import { canonicalJson, isJsonObject, type Json, type JsonObject } from '../core/index.ts';

/** An error in a matrix, with the path of the offending value. */
export interface MatrixFault {
  readonly path: readonly (string | number)[];
  /** Rest of a sentence that starts with the path. */
  readonly message: string;
  readonly hint?: string | undefined;
}

/** Returns true for a value that is only known at run time, and so cannot be checked yet. */
type IsPending = (value: Json) => boolean;

const modifiers = ['include', 'exclude'] as const;
const isModifier = (key: string): boolean => key === 'include' || key === 'exclude';

/**
 * Largest number of copies of a step, multiplied by the copies of the steps that contain it. Guards against a mistyped
 * number: every copy takes memory and is recorded in the history.
 */
export const maxCopies = 10_000;

/** Largest number of combinations that `include` and `exclude` are compared with. */
const maxComparisons = 10_000_000;

/** Returns every error in a matrix, written or computed. Never expands it. */
export function matrixFaults(matrix: Json, isPending: IsPending = () => false): readonly MatrixFault[] {
  if (isPending(matrix)) return [];
  const faults = shapeFaults(matrix, isPending);
  return faults.length > 0 ? faults : sizeFaults(matrix);
}

function sizeFaults(matrix: Json): readonly MatrixFault[] {
  const count = countCombinations(matrix);
  if (count > maxCopies) {
    const hint = 'remove values, or split the step';
    return [{ path: [], message: `must have at most ${maxCopies} combinations, not ${count}`, hint }];
  }
  const modified = isJsonObject(matrix) ? modifiers.map(key => listAt(matrix, key).length) : [];
  const comparisons = count * modified.reduce((sum, length) => sum + length, 0);
  if (comparisons <= maxComparisons) return [];
  return [{ path: [], message: 'has too many entries in `include` and `exclude` for its combinations' }];
}

/** Returns the number of combinations before `exclude`, from the lengths of the lists. A list that is not known counts as 1. */
export function countCombinations(matrix: Json): number {
  if (Array.isArray(matrix)) return matrix.length;
  if (!isJsonObject(matrix)) return 1;
  const lengths = axisNames(matrix).map(key => {
    const values = matrix[key];
    return Array.isArray(values) ? values.length : 1;
  });
  const product = lengths.length === 0 ? 0 : lengths.reduce((all, length) => all * length, 1);
  return product + listAt(matrix, 'include').length;
}

function shapeFaults(matrix: Json, isPending: IsPending): readonly MatrixFault[] {
  if (Array.isArray(matrix)) return objectsFaults(matrix, [], isPending);
  if (!isJsonObject(matrix)) {
    return [{ path: [], message: `must be a map of lists, or a list of maps, not ${describe(matrix)}` }];
  }
  const axes = axisNames(matrix);
  return Object.entries(matrix).flatMap(([key, value]) => {
    if (isPending(value)) return [];
    if (!Array.isArray(value)) return [notAList(key, value)];
    if (!isModifier(key)) return [];
    const faults = objectsFaults(value, [key], isPending);
    return key === 'exclude' ? [...faults, ...unknownExclusions(value, axes)] : faults;
  });
}

function objectsFaults(list: readonly Json[], path: MatrixFault['path'], isPending: IsPending) {
  return list.flatMap((item, index): readonly MatrixFault[] =>
    isJsonObject(item) || isPending(item)
      ? []
      : [{ path: [...path, index], message: `must be a map, not ${describe(item)}` }],
  );
}

const notAList = (key: string, value: Json): MatrixFault => ({
  path: [key],
  message: `must be a list, not ${describe(value)}`,
  hint: looksLikeList(value) ? 'parse it with `fromJSON( )`' : undefined,
});

const looksLikeList = (value: Json): boolean => typeof value === 'string' && value.trim().startsWith('[');

function unknownExclusions(list: readonly Json[], axes: readonly string[]): readonly MatrixFault[] {
  return list.flatMap((item, index) =>
    Object.keys(isJsonObject(item) ? item : {})
      .filter(key => !axes.includes(key))
      .map(key => ({
        path: ['exclude', index, key],
        message: 'is not a key of the matrix, so it excludes nothing',
      })),
  );
}

function describe(value: Json): string {
  if (value === null) return 'empty';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a map';
  const text = String(value);
  return `\`${text.length > 40 ? `${text.slice(0, 40)}…` : text.replaceAll('\n', ' ')}\``;
}

/** The keys of a matrix without `include` and `exclude`. */
export const axisNames = (matrix: JsonObject): readonly string[] =>
  Object.keys(matrix).filter(key => !isModifier(key));

/**
 * Expands a valid matrix as GitHub Actions does. The first key varies slowest. `exclude` removes every combination
 * that it matches. Each entry of `include` then extends all combinations whose original values it does not overwrite;
 * an entry that extends none becomes a combination of its own.
 */
export function expandMatrix(matrix: Json): readonly JsonObject[] {
  if (Array.isArray(matrix)) return matrix.filter(isJsonObject);
  if (!isJsonObject(matrix)) return [];
  const [include, exclude] = modifiers.map(key => listAt(matrix, key).filter(isJsonObject));
  const axes = axisNames(matrix).map(key => ({ key, values: listAt(matrix, key) }));
  const kept = combinations(axes).filter(item => !exclude?.some(pattern => fits(item, pattern)));
  return withIncluded(kept, include ?? []);
}

const listAt = (matrix: JsonObject, key: string): readonly Json[] => {
  const value = Object.hasOwn(matrix, key) ? matrix[key] : undefined;
  return Array.isArray(value) ? value : [];
};

interface Axis {
  readonly key: string;
  readonly values: readonly Json[];
}

function combinations(axes: readonly Axis[]): readonly JsonObject[] {
  if (axes.length === 0) return [];
  return axes.reduce<readonly JsonObject[]>(
    (items, { key, values }) => items.flatMap(item => values.map(value => ({ ...item, [key]: value }))),
    [{}],
  );
}

const isSame = (left: Json | undefined, right: Json): boolean =>
  left === right || (isCompound(left) && isCompound(right) && canonicalJson(left) === canonicalJson(right));

const isCompound = (value: Json | undefined): value is Json => typeof value === 'object' && value !== null;

const fits = (item: JsonObject, pattern: JsonObject): boolean =>
  Object.entries(pattern).every(([key, value]) => isSame(item[key], value));

/** A later addition may overwrite an earlier one, but never an original value of the matrix. */
function withIncluded(originals: readonly JsonObject[], include: readonly JsonObject[]): JsonObject[] {
  const items = [...originals];
  const added: JsonObject[] = [];
  for (const addition of include) {
    let fitted = false;
    for (const [index, original] of originals.entries()) {
      if (!agrees(original, addition)) continue;
      items[index] = { ...items[index], ...addition };
      fitted = true;
    }
    if (!fitted) added.push(addition);
  }
  return [...items, ...added];
}

const agrees = (original: JsonObject, addition: JsonObject): boolean =>
  Object.entries(addition).every(
    ([key, value]) => !Object.hasOwn(original, key) || isSame(original[key], value),
  );
