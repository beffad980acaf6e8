import { createRequire } from 'node:module';

/** User-defined regular expression. Matching takes time proportional to the length of the text. */
export interface Pattern {
  test(text: string): boolean;
}

/** Error in a regular expression that cannot be compiled. */
export class PatternError extends Error {
  override readonly name: string = 'PatternError';
  readonly hint: string | undefined;
  /** Offset in the regular expression, if it is known. */
  readonly start: number | undefined;
  readonly end: number | undefined;

  constructor(message: string, { start, end, hint }: PatternErrorOptions = {}) {
    super(message);
    this.hint = hint;
    this.start = start;
    this.end = end;
  }
}

interface PatternErrorOptions {
  readonly start?: number;
  readonly end?: number;
  readonly hint?: string;
}

/** `re2js` takes 5 ms to load, and few definitions contain a pattern. `require` keeps loading a definition synchronous. */
const require = createRequire(import.meta.url);
const engine = () => (require('re2js') as typeof import('re2js')).RE2JS;

/**
 * Compiles a JavaScript regular expression for an engine that never backtracks: an agent that chooses the text cannot
 * make it hang. Throws PatternError for invalid syntax, look-around and back-references.
 */
export function compilePattern(source: string, flags = ''): Pattern {
  checkSyntax(source, flags);
  const translated = new Translator(source, flags).translate();
  const RE2JS = engine();
  try {
    const compiled = RE2JS.compile(translated, flags.includes('i') ? RE2JS.CASE_INSENSITIVE : 0);
    return { test: text => compiled.test(text) };
  } catch (error) {
    throw new PatternError(`cannot be matched in linear time: ${reasonOf(error)}`, {
      hint: 'use counts of at most 1000 and the classes of RE2 (https://github.com/google/re2/wiki/Syntax)',
    });
  }
}

const reasonOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/^error parsing regexp: /, '');

/** Throws PatternError with the reason that JavaScript gives. Without flags, the syntax of the `u` flag is accepted too. */
function checkSyntax(source: string, flags: string): void {
  if (flags === '' && isValid(source, 'u')) return;
  try {
    new RegExp(source, flags);
  } catch (error) {
    // The beginning of the message differs between versions of JavaScript.
    const [reason = ''] = /[^:]*$/.exec(error instanceof Error ? error.message : '') ?? [];
    throw new PatternError(`is not a valid regular expression: ${reason.trim()}`);
  }
}

function isValid(source: string, flags: string): boolean {
  try {
    new RegExp(source, flags);
    return true;
  } catch {
    return false;
  }
}

/** White space and line ends as JavaScript defines them; RE2 knows only the ASCII ones. */
const space = String.raw`\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`;
const noSpace = String.raw`\x{0}-\x{8}\x{e}-\x{1f}!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`;
const anyCharacter = '(?s:.)';
const noCharacter = String.raw`[^\x{0}-\x{10ffff}]`;

const lookAround = { message: 'uses look-around', hint: 'write what the text must contain instead' };
const backReference = { message: 'uses a back-reference', hint: 'repeat the group instead' };
const setOperation = { message: 'uses an operation on sets', hint: 'list the characters instead' };

/** Translates a valid JavaScript regular expression to the syntax of RE2. Groups capture nothing. */
class Translator {
  readonly #source: string;
  readonly #flags: string;
  #at = 0;

  constructor(source: string, flags: string) {
    this.#source = source;
    this.#flags = flags;
  }

  translate(): string {
    let translated = '';
    while (this.#at < this.#source.length) translated += this.#next();
    // A sticky expression matches at the beginning only.
    return this.#flags.includes('y') ? String.raw`\A(?:${translated})` : translated;
  }

  #next(): string {
    const lines = this.#flags.includes('m');
    const character = this.#source.charAt(this.#at);
    switch (character) {
      case '\\':
        return this.#escape(false);
      case '[':
        return this.#class();
      case '(':
        return this.#group();
      case '.':
        return this.#take(1, this.#flags.includes('s') ? anyCharacter : String.raw`[^\n\r\x{2028}\x{2029}]`);
      case '^':
        return this.#take(1, lines ? '(?m:^)' : String.raw`\A`);
      case '$':
        return this.#take(1, lines ? '(?m:$)' : String.raw`\z`);
      case '{': {
        const count = this.#match(/\{\d+(,\d*)?\}/y);
        return count === undefined ? this.#take(1, String.raw`\{`) : this.#take(count.length, count);
      }
      case ']':
      case '}':
        return this.#take(1, `\\${character}`);
      default:
        return this.#take(1, character);
    }
  }

  #group(): string {
    const look = this.#match(/\(\?<?[=!]/y);
    if (look !== undefined) throw this.#refuse(look.length, lookAround);
    const named = this.#match(/\(\?<[^>]*>/y);
    if (named !== undefined) return this.#take(named.length, '(?:');
    return this.#source.startsWith('(?', this.#at) ? this.#take(2, '(?') : this.#take(1, '(?:');
  }

  #class(): string {
    const isNegated = this.#source.startsWith('[^', this.#at);
    this.#at += isNegated ? 2 : 1;
    let members = '';
    while (!this.#source.startsWith(']', this.#at)) members += this.#member();
    this.#at++;
    if (members === '') return isNegated ? anyCharacter : noCharacter;
    return `[${isNegated ? '^' : ''}${members}]`;
  }

  #member(): string {
    const operation = this.#flags.includes('v') ? this.#match(/\[|--|&&|\\q/y) : undefined;
    if (operation !== undefined) throw this.#refuse(operation.length, setOperation);
    const character = this.#source.charAt(this.#at);
    if (character === '\\') return this.#escape(true);
    return this.#take(1, character === '[' || character === '^' ? `\\${character}` : character);
  }

  #escape(isInClass: boolean): string {
    const reference = this.#match(/\\([1-9]\d*|k<[^>]*>|0\d+)/y);
    if (reference !== undefined) throw this.#refuse(reference.length, backReference);
    const code = this.#match(
      /\\(u\{[\da-fA-F]+\}|u[\da-fA-F]{4}(?:\\u[dD][c-fC-F][\da-fA-F]{2})?|x[\da-fA-F]{2})/y,
    );
    if (code !== undefined) return this.#code(code);
    const control = this.#match(/\\c[a-zA-Z]/y);
    if (control !== undefined) return this.#take(3, hex(control.charCodeAt(2) % 32));
    const property = this.#match(/\\[pP]\{[^}]*\}/y);
    if (property !== undefined)
      return this.#take(property.length, property.replace(/\{(Script|sc|General_Category|gc)=/, '{'));
    const letter = this.#source.charAt(this.#at + 1);
    return this.#take(2, isInClass ? escapeInClass(letter) : escapeOutside(letter));
  }

  /** Translates a character code. The two halves of a surrogate pair are one character. */
  #code(written: string): string {
    const numbers = [...written.matchAll(/[\da-fA-F]{2,}|\{[\da-fA-F]+/g)].map(([digits]) =>
      Number.parseInt(digits.replace('{', ''), 16),
    );
    const isHigh = numbers[0] !== undefined && numbers[0] >= 0xd800 && numbers[0] <= 0xdbff;
    if (numbers.length === 2 && !isHigh) return this.#take(6, hex(numbers[0] ?? 0));
    const [point = 0] = [...String.fromCodePoint(...numbers)];
    return this.#take(written.length, hex(String(point).codePointAt(0) ?? 0));
  }

  #match(sticky: RegExp): string | undefined {
    sticky.lastIndex = this.#at;
    return sticky.exec(this.#source)?.[0];
  }

  #take(length: number, translated: string): string {
    this.#at += length;
    return translated;
  }

  #refuse(
    length: number,
    { message, hint }: { readonly message: string; readonly hint: string },
  ): PatternError {
    const part = this.#source.slice(this.#at, this.#at + length);
    const where = `\`${part}\` at character ${this.#at + 1}`;
    return new PatternError(`${message}, ${where}, which cannot be matched in linear time`, {
      start: this.#at,
      end: this.#at + length,
      hint,
    });
  }
}

const hex = (code: number): string => `\\x{${code.toString(16)}}`;

function escapeInClass(letter: string): string {
  if (letter === 's') return space;
  if (letter === 'S') return noSpace;
  return letter === 'b' ? hex(8) : escapeAnywhere(letter);
}

function escapeOutside(letter: string): string {
  if (letter === 's') return `[${space}]`;
  if (letter === 'S') return `[^${space}]`;
  return letter === 'b' || letter === 'B' ? `\\${letter}` : escapeAnywhere(letter);
}

/** A letter without a meaning in JavaScript stands for itself, but may have a meaning in RE2. */
function escapeAnywhere(letter: string): string {
  if ('dDwWnrtfv'.includes(letter)) return `\\${letter}`;
  if (letter === '0') return hex(0);
  return /[\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e]/.test(letter) ? `\\${letter}` : letter;
}
