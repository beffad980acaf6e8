import {
  fixedText,
  parseShell,
  piecesOf,
  type ShellPieces,
  type Word,
  wordsOf,
} from '../../workflow/shell-grammar.ts';

/** A character, or one of the signs below. Numbers cannot be confused with characters of a command. */
type Sign = number;

/** Boundary between two words. */
const gap = -1;
/** Text of a command that only the running shell knows. */
const unknown = -2;
/** `*` in a rule: any text, also several words. */
const star = -3;

/** A rule about commands, in words as a shell reads them. */
export interface CommandPattern {
  /** Text of the rule. */
  readonly text: string;
  /** Forms of the rule. `npm run *` also matches `npm run`. */
  readonly forms: readonly (readonly Sign[])[];
  /** Number of words before the first wildcard. `Infinity` if the rule has none. */
  readonly fixedWords: number;
  /** The words before the first wildcard. */
  readonly names: readonly string[];
  /** False if the rule is more than one command. It then matches only text. */
  readonly isCommand: boolean;
}

/** Parses the text in the parentheses of `Bash(...)`. */
export function parsePattern(about: string): CommandPattern {
  const text = about.trim();
  // `npm run:*` is an older form of `npm run *`.
  const written = text.replace(/:\*$/, ' *');
  const words = patternWords(written);
  const tokens = (words ?? written.split(/\s+/).map(withStars)).filter(word => word.length > 0);
  const last = tokens.at(-1);
  const endsOpen = tokens.length > 1 && last?.length === 1 && last[0] === star;
  const wild = tokens.findIndex(word => word.includes(star));
  return {
    text,
    forms: [join(tokens), ...(endsOpen ? [join(tokens.slice(0, -1))] : [])],
    fixedWords: wild < 0 ? Number.POSITIVE_INFINITY : wild,
    names: tokens.slice(0, wild < 0 ? tokens.length : wild).map(word => String.fromCharCode(...word)),
    isCommand: words !== undefined,
  };
}

/** Returns the words of a rule that is one command, or `undefined`. */
function patternWords(text: string): readonly (readonly Sign[])[] | undefined {
  const { commands, errors } = parseShell(text);
  const command = commands.length === 1 ? commands[0]?.command : undefined;
  if (errors?.length || commands[0]?.background || command?.type !== 'Command') return undefined;
  if (command.redirects.length > 0 || command.end < text.length) return undefined;
  const assigned = command.prefix.flatMap(part => (part.type === 'Assignment' ? [part.text] : []));
  return [...assigned.map(tokensOfText), ...wordsOf(command).map(tokensOfPattern)];
}

/** In a rule, only an unquoted `*` is special. Everything else that a shell would expand stands for itself. */
function tokensOfPattern(word: Word): readonly Sign[] {
  if (fixedText(word) !== undefined) return piecesOf(word).flatMap(piece => tokensOfText(piece ?? ''));
  return (word.parts ?? []).flatMap(part => {
    if (part.type === 'Glob' && part.kind === 'star') return [star];
    const known = piecesOf({ ...word, parts: [part] });
    return known.includes(undefined)
      ? withStars(part.text)
      : known.flatMap(piece => tokensOfText(piece ?? ''));
  });
}

const withStars = (text: string): readonly Sign[] =>
  tokensOfText(text).map(token => (token === 42 ? star : token));

const tokensOfText = (text: string): readonly Sign[] => Array.from(text, (_, at) => text.charCodeAt(at));

const join = (words: readonly (readonly Sign[])[]): readonly Sign[] =>
  words.flatMap((word, index) => (index === 0 ? word : [gap, ...word]));

const tokensOfWords = (words: readonly ShellPieces[]): readonly Sign[] =>
  join(words.map(word => word.flatMap(piece => (piece === undefined ? [unknown] : tokensOfText(piece)))));

/** Whether a rule matches a command whatever its unknown text turns out to be. */
export const matches = ({ forms }: CommandPattern, words: readonly ShellPieces[]): boolean => {
  const tokens = tokensOfWords(words);
  return forms.some(form => fits(form, tokens, false));
};

/** Whether a rule matches a command for some value of its unknown text. */
export const mayMatch = ({ forms }: CommandPattern, words: readonly ShellPieces[]): boolean => {
  // A variable without quotes can also be no word at all.
  const texts = [words, words.filter(word => word.some(piece => piece !== undefined))].map(tokensOfWords);
  return forms.some(form => texts.some(tokens => fits(form, tokens, true)));
};

/** Takes time proportional to the product of both lengths. */
function fits(pattern: readonly Sign[], text: readonly Sign[], guesses: boolean): boolean {
  // `row[n]` tells whether the pattern so far matches the first n tokens of the text.
  const isOpen = (at: number) => guesses && text[at] === unknown;
  const close = (row: boolean[]): boolean[] => {
    for (let at = 0; at < text.length; at++) if (row[at] && isOpen(at)) row[at + 1] = true;
    return row;
  };
  let row = close([true, ...text.map(() => false)]);
  for (const token of pattern) {
    const before = row;
    let seen = false;
    row = close(
      before.map((reached, at) => {
        seen ||= reached;
        if (token === star) return seen;
        return (at > 0 && before[at - 1] === true && text[at - 1] === token) || (reached && isOpen(at));
      }),
    );
  }
  return row[text.length] === true;
}
