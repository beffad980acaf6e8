import { type KnownWords, programName, type ShellPieces } from '../../workflow/shell-grammar.ts';
import { type CommandPattern, matches, mayMatch, parsePattern } from './command-patterns.ts';
import type { EveryCommand } from './every-command.ts';
import { filesReadBy, runsUnnamed } from './programs.ts';
import { pathInside } from './rules.ts';
import { readLine, type SimpleCommand } from './shell-commands.ts';

const mostOptions = 50;

/** What a line may consist of. */
interface AllowedCommands {
  readonly patterns: readonly string[];
  /** Check commands of the step. */
  readonly checks: readonly string[];
  readonly workspace: string;
  readonly resolve: (path: string) => string;
  /** Whether the agent may read a resolved path. */
  readonly mayRead: (path: string) => boolean;
}

type LineRuling = { readonly kind: 'allowed' } | { readonly kind: 'open'; readonly why?: string | undefined };

/** Whether every command of a line is allowed. A rule whose text is the whole line allows it, whatever it does. */
export function allowLine(line: string, allowed: AllowedCommands): LineRuling {
  const isWritten = (text: string) =>
    [...allowed.patterns, ...allowed.checks].some(each => each.trim() === text);
  if (isWritten(line.trim())) return { kind: 'allowed' };
  const reading = readLine(line);
  if (reading.kind === 'undecided') return { kind: 'open', why: reading.why };
  const patterns = allowed.patterns.map(parsePattern).filter(({ isCommand }) => isCommand);
  const { commands } = reading;
  let folder: string | undefined = allowed.workspace;
  for (const [index, command] of commands.entries()) {
    const target = changedFolder(command, allowed, index === 0);
    if (target !== undefined) folder = target;
    else {
      const isMoved = folder !== allowed.workspace;
      const isRuled = isWritten(command.text) || patterns.some(pattern => allows(pattern, command));
      const mayRun = isRuled
        ? !(isMoved && isRelativeProgram(command))
        : onlyReads(command, allowed, isMoved);
      if (!mayRun)
        return {
          kind: 'open',
          ...(commands.length > 1 ? { why: `no rule allows \`${command.text}\`` } : {}),
        };
    }
  }
  return commands.length > 0 ? { kind: 'allowed' } : { kind: 'open' };
}

function allows(pattern: CommandPattern, { words, assignments }: SimpleCommand): boolean {
  if (assignments > pattern.fixedWords || !matches(pattern, words)) return false;
  return !runsUnnamed(knownOf(words).slice(assignments), pattern.fixedWords - assignments);
}

const knownOf = (words: readonly ShellPieces[]): KnownWords =>
  words.map(pieces => (pieces.includes(undefined) ? undefined : pieces.join('')));

/** After `cd`, a program such as `./test.sh` is not the one that the rule means. */
const isRelativeProgram = ({ words, assignments }: SimpleCommand): boolean =>
  /^[^/].*\//s.test(knownOf(words)[assignments] ?? '');

/** Returns the folder of a `cd` that stays in the workspace. A relative one counts only as the first command. */
function changedFolder(
  { words, assignments }: SimpleCommand,
  { workspace, resolve }: AllowedCommands,
  isFirst: boolean,
): string | undefined {
  const [name, path, ...others] = knownOf(words);
  if (name !== 'cd' || assignments > 0 || !path || others.length > 0 || /^[-+~]/.test(path)) return undefined;
  if (!path.startsWith('/') && !isFirst) return undefined;
  const folder = resolve(path);
  return pathInside(workspace, folder) === undefined ? undefined : folder;
}

/** Whether a command is a filter such as `tail -5`, and reads only files that the agent may read. */
function onlyReads(
  { words, assignments }: SimpleCommand,
  { resolve, mayRead }: AllowedCommands,
  isMoved: boolean,
): boolean {
  const files = assignments > 0 ? undefined : filesReadBy(knownOf(words));
  return files?.every(file => (file.startsWith('/') || !isMoved) && mayRead(resolve(file))) ?? false;
}

/** Why a line is denied: a command matches the rule, or it cannot be told whether one does. */
type LineDenial = { readonly kind: 'match' } | { readonly kind: 'doubt'; readonly why: string };

/** Compares everything that a line can run with a rule that denies. */
export function denyLine(
  about: string,
  { line, commands, codes, doubt }: EveryCommand,
): LineDenial | undefined {
  const pattern = parsePattern(about);
  if (
    matches(
      pattern,
      line
        .trim()
        .split(/\s+/)
        .map(word => [word]),
    )
  )
    return { kind: 'match' };
  const denied = pattern.isCommand ? byName(pattern) : pattern;
  const forms = commands.flatMap(formsOf);
  if (forms.some(words => matches(denied, words)) || codes.some(code => mentions(code, denied)))
    return { kind: 'match' };
  const open = forms.find(words => words.some(isComputed) && mayMatch(denied, words));
  if (open) return { kind: 'doubt', why: `\`${shown(open)}\` is computed in part` };
  return doubt === undefined ? undefined : { kind: 'doubt', why: doubt };
}

const isComputed = (word: ShellPieces): boolean => word.includes(undefined);

/** The rule without assignments and without the folder of its program. */
const byName = ({ text }: CommandPattern): CommandPattern =>
  parsePattern(
    text
      .replace(/^(?:\w+=\S*\s+)+/, '')
      .replace(/^\S*\/(?=\S)/, '')
      .replace(/^\S+/, name => name.toLowerCase()),
  );

/**
 * The forms of a command that mean the same: without the folder of its program, in small letters as some file systems
 * compare names, and without the options before a subcommand (`git -C x push`).
 */
function formsOf(words: readonly ShellPieces[]): readonly (readonly ShellPieces[])[] {
  const [name = [], ...rest] = words;
  const program = [programName(name.join('')).toLowerCase()];
  const isOption = (word: ShellPieces | undefined) =>
    word !== undefined && word[0]?.startsWith('-') !== false;
  const forms = [[program, ...rest]];
  for (let at = 0; at < rest.length && (isOption(rest[at]) || isOption(rest[at - 1])); at++) {
    // Beyond this number of options, everything else may be the subcommand.
    if (at > mostOptions) return [...forms, [program, [undefined]]];
    forms.push([program, ...rest.slice(at + 1)]);
  }
  return forms;
}

/** Whether code in another language names all fixed words of a rule. */
function mentions(code: string, { names }: CommandPattern): boolean {
  const words = new Set(code.toLowerCase().split(/[^\w.-]+/));
  return names.length > 0 && names.every(name => words.has(name.toLowerCase()));
}

const shown = (words: readonly ShellPieces[]): string =>
  words
    .map(word => word.map(piece => piece ?? '...').join(''))
    .join(' ')
    .slice(0, 80);
