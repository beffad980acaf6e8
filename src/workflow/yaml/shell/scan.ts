import type { Mutable } from '../../../core/index.ts';
import { closingMark, openingMark } from '../../expression/template.ts';

/** Syntactic context of a `${{ }}` in a script. */
export type SlotPlace = 'bare' | 'double' | 'single' | 'ansi' | 'document' | RefusedPlace;

/** Contexts where a value is refused, because the shell would not expand it or would evaluate it. */
type RefusedPlace = 'quoted-document' | 'delimiter' | 'arithmetic' | 'parameter' | 'backticks';

/** A `${{ }}` in a script, including the braces. */
export interface Slot {
  readonly start: number;
  readonly end: number;
  readonly place: SlotPlace;
  /** True if a literal `$` precedes the slot. It must not combine with the replacement of the slot. */
  readonly afterDollar: boolean;
}

interface ShellScan {
  readonly slots: readonly Slot[];
  /** Offset of a `${{` that is never closed. */
  readonly unclosed: number | undefined;
}

/** A `[[ ]]`. It evaluates the operands of `-eq` and similar tests as arithmetic, which can run commands. */
interface Conditional {
  computes: boolean;
  readonly slots: Mutable<Slot>[];
}

/** Commands: the whole script, or the content of `( )`, `$( )` or backticks. */
interface Code {
  readonly kind: 'code';
  readonly end: 'file' | ')' | '`';
  readonly documents: HereDocument[];
  /** Number of open `case` statements, in which `)` ends a pattern. */
  cases: number;
  atCommand: boolean;
  wordStart: number | undefined;
  conditional: Conditional | undefined;
  hasEscapes: boolean;
}

/** Nested contexts of the shell. The innermost frame determines the meaning of the next character. */
type Frame =
  | Code
  | { readonly kind: 'double' | 'single' | 'ansi' }
  | { readonly kind: 'parameter'; readonly isInDouble: boolean; readonly singleQuotes: boolean }
  | { readonly kind: 'arithmetic'; readonly brackets: '()' | '[]'; depth: number }
  | (HereDocument & { readonly kind: 'document'; atLineStart: boolean });

type FrameOf<Kind extends Frame['kind']> = Extract<Frame, { readonly kind: Kind }>;

const beforeCommands: ReadonlySet<string> = new Set([
  'then',
  'do',
  'else',
  'elif',
  'if',
  'while',
  'until',
  '!',
  '{',
  'time',
]);
const computingTests: ReadonlySet<string> = new Set(['-eq', '-ne', '-lt', '-le', '-gt', '-ge', '-v']);

const newCode = (end: Code['end'], conditional?: Conditional): Code => ({
  kind: 'code',
  end,
  documents: [],
  cases: 0,
  atCommand: true,
  wordStart: undefined,
  conditional,
  hasEscapes: false,
});

/** Ends a word, which may open or close a construct such as `case` or `[[`. */
function endWord(code: Code, word: string): void {
  code.wordStart = undefined;
  if (word === ']]') code.conditional = undefined;
  if (code.conditional && computingTests.has(word)) {
    code.conditional.computes = true;
    for (const slot of code.conditional.slots) slot.place = 'arithmetic';
  }
  if (!code.atCommand) return;
  if (word === 'case') code.cases++;
  if (word === 'esac') code.cases = Math.max(0, code.cases - 1);
  if (word === '[[') code.conditional = { computes: false, slots: [] };
  code.atCommand = beforeCommands.has(word);
}

/** A here-document whose operator has been read, and whose lines follow. */
interface HereDocument {
  readonly delimiter: string;
  /** If true, the shell expands nothing in its lines. */
  readonly isQuoted: boolean;
  readonly stripsTabs: boolean;
}

/** Reads `<<EOF` at `at`. Returns `undefined` if no delimiter follows. `end` is the offset after it. */
function readHereDocument(text: string, at: number): (HereDocument & { readonly end: number }) | undefined {
  const operator = /<<(-?)[ \t]*/y;
  operator.lastIndex = at;
  const found = operator.exec(text);
  const word = /(?:'[^']*'|"[^"]*"|\\[^\n]|[^\s;&|<>()'"\\])+/y;
  word.lastIndex = at + (found?.[0].length ?? 0);
  const written = word.exec(text)?.[0];
  if (!found || written === undefined || written.includes(openingMark)) return undefined;
  return {
    delimiter: written.replace(/'([^']*)'|"([^"]*)"|\\(.)/g, '$1$2$3'),
    isQuoted: /['"\\]/.test(written),
    stripsTabs: found[1] === '-',
    end: word.lastIndex,
  };
}

/** Returns true if the `((` before `from` closes with `))`. It is then arithmetic, not two nested subshells. */
function isArithmetic(text: string, from: number): boolean {
  let depth = 1;
  for (let at = from; at < text.length; at++) {
    const sign = text[at];
    if (sign === '\\') at++;
    else if (text.startsWith(openingMark, at)) at = closingMark(text, at) ?? text.length;
    else if (sign === "'" || sign === '"') at = closingQuote(text, at);
    else if (sign === '(') depth++;
    else if (sign === ')' && --depth === 0) return text[at + 1] === ')';
  }
  return false;
}

function closingQuote(text: string, at: number): number {
  const close = text.indexOf(text[at] ?? '', at + 1);
  return close === -1 ? text.length : close;
}

/**
 * Returns true if single quotes are quotes inside the `${...}` whose name starts at `at`. In bash they always are. In
 * other shells, inside double quotes, they are quotes only in patterns (`${x#...}`), but not in words (`${x:-it's}`).
 */
function quotesInParameter(
  text: string,
  at: number,
  { shell, isInDouble }: { readonly shell: 'bash' | 'sh'; readonly isInDouble: boolean },
): boolean {
  const name = /[#!]?(?:[A-Za-z_]\w*|\d+|[@*#?$!-])(?:\[[^\]]*\])?/y;
  name.lastIndex = at;
  const operator = text[at + (name.exec(text)?.[0].length ?? 0)] ?? '';
  return shell === 'bash' || !isInDouble || '#%/^,'.includes(operator);
}

/** Finds every `${{ }}` in a script with its context. Ignores those in comments. */
export const scanShell = (text: string, shell: 'bash' | 'sh'): ShellScan =>
  new ShellScanner(text, shell).scan();

class ShellScanner {
  readonly #text: string;
  readonly #shell: 'bash' | 'sh';
  readonly #slots: Mutable<Slot>[] = [];
  readonly #stack: Frame[] = [newCode('file')];
  #at = 0;

  constructor(text: string, shell: 'bash' | 'sh') {
    this.#text = text;
    this.#shell = shell;
  }

  scan(): ShellScan {
    while (this.#at < this.#text.length) {
      const afterDollar = this.#sees('$${{');
      if (afterDollar) this.#at++;
      if (!this.#sees('${{')) this.#at = this.#step();
      else if (!this.#slot(afterDollar)) return { slots: this.#slots, unclosed: this.#at };
    }
    return { slots: this.#slots, unclosed: undefined };
  }

  #step(): number {
    const frame = this.#top();
    const sign = this.#text[this.#at];
    const backticks = this.#stack.findLast(open => open.kind === 'code' && open.end === '`');
    if (sign === '\\' && backticks?.kind === 'code') backticks.hasEscapes = true;
    if (sign === '`' && backticks) return this.#closeBackticks(backticks);
    switch (frame.kind) {
      case 'code':
        return this.#code(frame, sign);
      case 'double':
        if (sign === '"') return this.#pop();
        return this.#expanding(frame, sign);
      case 'single':
        return sign === "'" ? this.#pop() : this.#skip(1);
      case 'ansi':
        return sign === "'" ? this.#pop() : this.#skip(sign === '\\' ? 2 : 1);
      case 'parameter':
        if (sign === '}') return this.#pop();
        if (sign === '"') return this.#push({ kind: 'double' }, 1);
        if (sign === "'" && frame.singleQuotes) return this.#push({ kind: 'single' }, 1);
        return this.#expanding(frame, sign);
      case 'arithmetic':
        return this.#arithmetic(frame, sign);
      case 'document':
        return this.#document(frame, sign);
    }
  }

  #code(frame: Code, sign: string | undefined): number {
    switch (sign) {
      case '\n':
        return this.#newline(frame);
      case ' ':
      case '\t':
      case '\r':
        this.#endWord(frame);
        return this.#skip(1);
      case ';':
      case '&':
      case '|':
        this.#endWord(frame);
        frame.atCommand = true;
        return this.#skip(1);
      case '<':
      case '>':
        this.#endWord(frame);
        return this.#redirection(frame);
      case '(':
        return this.#parenthesis(frame);
      case ')':
        return this.#closeParenthesis(frame);
      case '#':
        if (frame.wordStart === undefined) return this.#comment();
        return this.#skip(1);
      default:
        frame.wordStart ??= this.#at;
        if (sign === "'") return this.#push({ kind: 'single' }, 1);
        if (sign === '"') return this.#push({ kind: 'double' }, 1);
        return this.#expanding(frame, sign);
    }
  }

  /** Handles the syntax that code, double quotes and here-documents share. */
  #expanding(frame: Frame, sign: string | undefined): number {
    if (sign === '\\') return this.#skip(2);
    if (sign === '`') return this.#push(newCode('`'), 1);
    if (sign !== '$') return this.#skip(1);
    const next = this.#text[this.#at + 1] ?? '';
    if (next === '(') {
      const computes = this.#text[this.#at + 2] === '(' && isArithmetic(this.#text, this.#at + 3);
      if (computes) return this.#push({ kind: 'arithmetic', brackets: '()', depth: 0 }, 3);
      return this.#push(newCode(')'), 2);
    }
    if (next === '{') return this.#push(this.#parameter(frame), 2);
    if (next === '[' && this.#shell === 'bash')
      return this.#push({ kind: 'arithmetic', brackets: '[]', depth: 0 }, 2);
    if (next === "'" && frame.kind === 'code' && this.#shell === 'bash')
      return this.#push({ kind: 'ansi' }, 2);
    return this.#skip('$#!?*@-'.includes(next) ? 2 : 1);
  }

  #parameter(outer: Frame): Frame {
    const isInDouble =
      outer.kind === 'double' ||
      outer.kind === 'document' ||
      (outer.kind === 'parameter' && outer.isInDouble);
    return {
      kind: 'parameter',
      isInDouble,
      singleQuotes: quotesInParameter(this.#text, this.#at + 2, { shell: this.#shell, isInDouble }),
    };
  }

  #arithmetic(frame: FrameOf<'arithmetic'>, sign: string | undefined): number {
    const [open, close] = frame.brackets;
    if (sign === open) frame.depth++;
    if (sign !== close) return this.#expanding(frame, sign);
    if (frame.depth-- > 0) return this.#skip(1);
    const next = this.#pop();
    return close === ')' ? next + 1 : next;
  }

  #document(frame: FrameOf<'document'>, sign: string | undefined): number {
    const end = frame.atLineStart ? this.#endOfDocument(frame) : undefined;
    if (end !== undefined) {
      this.#stack.pop();
      return end;
    }
    frame.atLineStart = sign === '\n';
    if (frame.isQuoted || sign === '\n') return this.#skip(1);
    return this.#expanding(frame, sign);
  }

  /** Returns the offset after the line if it is the delimiter. */
  #endOfDocument({ delimiter, stripsTabs }: HereDocument): number | undefined {
    const newline = this.#text.indexOf('\n', this.#at);
    const end = newline === -1 ? this.#text.length : newline;
    const line = this.#text.slice(this.#at, end);
    return (stripsTabs ? line.replace(/^\t+/, '') : line) === delimiter ? end + 1 : undefined;
  }

  #newline(frame: Code): number {
    this.#endWord(frame);
    frame.atCommand = true;
    // Here-documents follow in the order of their operators, so the first goes on top of the stack.
    for (const document of frame.documents.splice(0).reverse()) {
      this.#stack.push({ kind: 'document', ...document, atLineStart: true });
    }
    return this.#skip(1);
  }

  #redirection(frame: Code): number {
    const document = this.#sees('<<') ? readHereDocument(this.#text, this.#at) : undefined;
    if (!document) return this.#skip(this.#sees('<<') ? 2 : 1);
    frame.documents.push(document);
    return document.end;
  }

  #parenthesis(frame: Code): number {
    this.#endWord(frame);
    if (this.#sees('((') && isArithmetic(this.#text, this.#at + 2)) {
      return this.#push({ kind: 'arithmetic', brackets: '()', depth: 0 }, 2);
    }
    frame.atCommand = true;
    return this.#push(newCode(')', frame.conditional), 1);
  }

  #closeParenthesis(frame: Code): number {
    this.#endWord(frame);
    if (frame.cases > 0) frame.atCommand = true;
    else if (frame.end === ')') return this.#pop();
    return this.#skip(1);
  }

  #closeBackticks(backticks: Frame): number {
    this.#stack.length = this.#stack.indexOf(backticks);
    return this.#skip(1);
  }

  #comment(): number {
    const inBackticks = this.#stack.some(frame => frame.kind === 'code' && frame.end === '`');
    const comment = inBackticks ? /[^\n`]*/y : /[^\n]*/y;
    comment.lastIndex = this.#at;
    return this.#skip(comment.exec(this.#text)?.[0].length ?? 0);
  }

  #endWord(frame: Code): void {
    if (frame.wordStart !== undefined) endWord(frame, this.#text.slice(frame.wordStart, this.#at));
  }

  #slot(afterDollar: boolean): boolean {
    const close = closingMark(this.#text, this.#at);
    if (close === undefined) return false;
    const frame = this.#top();
    if (frame.kind === 'code') frame.wordStart ??= this.#at;
    if (frame.kind === 'document') frame.atLineStart = false;
    const conditional = this.#stack.findLast(open => open.kind === 'code')?.conditional;
    const place = conditional?.computes ? 'arithmetic' : this.#place(frame);
    const slot = { start: this.#at, end: close + 2, place, afterDollar };
    this.#slots.push(slot);
    conditional?.slots.push(slot);
    this.#at = slot.end;
    return true;
  }

  #place(frame: Frame): SlotPlace {
    if (this.#stack.some(open => open.kind === 'code' && open.hasEscapes)) return 'backticks';
    switch (frame.kind) {
      case 'code':
        if (this.#isDelimiter()) return 'delimiter';
        return this.#isInSubscript() ? 'arithmetic' : 'bare';
      case 'double':
      case 'single':
      case 'ansi':
        if (this.#stack.at(-2)?.kind === 'parameter') return 'parameter';
        return this.#isInSubscript() ? 'arithmetic' : frame.kind;
      case 'parameter':
      case 'arithmetic':
        return frame.kind;
      case 'document':
        return frame.isQuoted ? 'quoted-document' : 'document';
    }
  }

  #isDelimiter(): boolean {
    return /(?:^|[^<])<<-?[ \t]*[^\s;&|<>()]*$/.test(this.#text.slice(Math.max(0, this.#at - 80), this.#at));
  }

  /** True inside `list[...]=`, whose subscript bash evaluates as arithmetic. */
  #isInSubscript(): boolean {
    const code = this.#stack.findLast(open => open.kind === 'code');
    const word = this.#text.slice(code?.wordStart ?? this.#at, this.#at);
    return /^[A-Za-z_]\w*\[[^\]]*$/.test(word);
  }

  #top(): Frame {
    return this.#stack.at(-1) ?? newCode('file');
  }

  #sees(text: string): boolean {
    return this.#text.startsWith(text, this.#at);
  }

  #skip(length: number): number {
    return this.#at + length;
  }

  #push(frame: Frame, length: number): number {
    this.#stack.push(frame);
    return this.#skip(length);
  }

  #pop(): number {
    this.#stack.pop();
    return this.#skip(1);
  }
}
