import type { Scalar } from 'yaml';

/**
 * Where a place in a scalar's value stands in the file. YAML folds lines, strips indentation and reads escapes, but
 * it never adds, drops or reorders what is not white space: so the n-th visible character of the value is the n-th of
 * its source.
 */
export function offsetInFile(text: string, scalar: Scalar, offsetInValue: number): number {
  const value = String(scalar.value);
  const [start = 0, end = text.length] = scalar.range ?? [];
  const visibleBefore = countVisible(value.slice(0, offsetInValue));
  const onVisible = offsetInValue < value.length && isVisible(value.charCodeAt(offsetInValue));
  const wanted = onVisible ? visibleBefore + 1 : visibleBefore;
  let seen = 0;
  let last = contentStart(text, scalar, start);
  for (const unit of sourceUnits(text, scalar, { start: last, end })) {
    if (!unit.visible) continue;
    seen++;
    if (seen === wanted) return onVisible ? unit.at : unit.at + unit.length;
    last = unit.at;
  }
  return last;
}

const isVisible = (code: number): boolean => code !== 32 && code !== 9 && code !== 10 && code !== 13;

function countVisible(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) if (isVisible(text.charCodeAt(at))) count++;
  return count;
}

/** After the opening quote, or after the line of a `|` or `>`. */
function contentStart(text: string, { type }: Scalar, start: number): number {
  switch (type) {
    case 'QUOTE_DOUBLE':
    case 'QUOTE_SINGLE':
      return start + 1;
    case 'BLOCK_LITERAL':
    case 'BLOCK_FOLDED': {
      const newline = text.indexOf('\n', start);
      return newline === -1 ? start : newline + 1;
    }
    default:
      return start;
  }
}

interface SourceUnit {
  readonly at: number;
  readonly length: number;
  readonly visible: boolean;
}

function* sourceUnits(
  text: string,
  { type }: Scalar,
  { start, end }: { readonly start: number; readonly end: number },
): Generator<SourceUnit> {
  for (let at = start; at < end; ) {
    const unit = type === 'QUOTE_DOUBLE' ? escapedUnit(text, at) : undefined;
    const length = unit?.length ?? (type === 'QUOTE_SINGLE' && text.startsWith("''", at) ? 2 : 1);
    const visible = unit?.visible ?? isVisible(text.charCodeAt(at));
    // A character beyond the basic plane is two units of the value, though one escape in the source.
    for (let half = 0; half < (unit?.units ?? 1); half++) yield { at, length, visible };
    at += length;
  }
}

const escapeLengths: Readonly<Record<string, number>> = { x: 4, u: 6, U: 10 };

function escapedUnit(text: string, at: number) {
  if (text[at] !== '\\') return undefined;
  const letter = text[at + 1] ?? '';
  const length = escapeLengths[letter];
  if (length === undefined) return { length: 2, visible: !/[ \tntr\r\n]/.test(letter), units: 1 };
  const code = Number.parseInt(text.slice(at + 2, at + length), 16);
  return { length, visible: isVisible(code), units: code > 0xffff ? 2 : 1 };
}
