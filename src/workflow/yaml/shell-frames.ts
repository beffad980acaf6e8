import type { HereDocument } from './shell-syntax.ts';

/** How the shell reads the place where a `${{ }}` stands. */
export type SlotPlace = 'bare' | 'double' | 'single' | 'ansi' | 'document' | RefusedPlace;

/** Where a value cannot stand: the shell would not expand it there, or would compute it. */
type RefusedPlace = 'quoted-document' | 'delimiter' | 'arithmetic' | 'parameter' | 'backticks';

/** A `${{ }}` of a script, from its `$` to behind its last brace. */
export interface Slot {
  readonly start: number;
  readonly end: number;
  readonly place: SlotPlace;
  /** A plain `$` stands right before it, and must not join what the slot becomes. */
  readonly afterDollar: boolean;
}

export interface ShellScan {
  readonly slots: readonly Slot[];
  /** Where a `${{` begins that never ends. */
  readonly unclosed: number | undefined;
}

/** `[[ ]]` computes the operands of `-eq` and its like, and a computed value can run commands. */
interface Conditional {
  computes: boolean;
  readonly slots: Mutable<Slot>[];
}

/** Commands: the whole script, or what stands in `( )`, `$( )` or backticks. */
export interface Code {
  readonly kind: 'code';
  readonly end: 'file' | ')' | '`';
  readonly documents: HereDocument[];
  /** How many `case` are open: there a `)` ends a pattern. */
  cases: number;
  atCommand: boolean;
  wordStart: number | undefined;
  conditional: Conditional | undefined;
  hasEscapes: boolean;
}

/** What the shell is reading: the innermost frame says what the next sign means. */
export type Frame =
  | Code
  | { readonly kind: 'double' | 'single' | 'ansi' }
  | { readonly kind: 'parameter'; readonly isInDouble: boolean; readonly singleQuotes: boolean }
  | { readonly kind: 'arithmetic'; readonly brackets: '()' | '[]'; depth: number }
  | (HereDocument & { readonly kind: 'document'; atLineStart: boolean });

export type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };
export type FrameOf<Kind extends Frame['kind']> = Extract<Frame, { readonly kind: Kind }>;

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

export const newCode = (end: Code['end'], conditional?: Conditional): Code => ({
  kind: 'code',
  end,
  documents: [],
  cases: 0,
  atCommand: true,
  wordStart: undefined,
  conditional,
  hasEscapes: false,
});

/** A word of commands has ended: it may open or close something that changes what comes later. */
export function endWord(code: Code, word: string): void {
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
