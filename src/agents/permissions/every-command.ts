import {
  type Command,
  fixedText,
  innerCommand,
  isMisread,
  type KnownWords,
  parseShell,
  piecesOf,
  programName,
  type ShellPieces,
  type SyntaxNode,
  shellCall,
  shellPrograms,
  type Word,
  walkShell,
  wordsOf,
  wrapperPrograms,
} from '../../workflow/shell-grammar.ts';
import { whyUnread } from './shell-commands.ts';

/** Everything that a line can run, as far as its text tells, for rules that deny commands. */
export interface EveryCommand {
  readonly line: string;
  readonly commands: readonly (readonly ShellPieces[])[];
  /** Code in another language, which can run commands too. */
  readonly codes: readonly string[];
  /** Reason why the line may run more than its text tells. */
  readonly doubt?: string | undefined;
}

/** Programs whose arguments contain commands, beside the wrappers. */
const takesCommands: ReadonlySet<string> = new Set(
  'parallel watch ssh su script at batch chroot nsenter unshare flock expect tmux screen repeat coproc jobs'.split(
    ' ',
  ),
);
const interpreters =
  /^(?:python[\d.]*|node|nodejs|bun|deno|perl|ruby|php|lua|g?awk|mawk|nawk|osascript|tclsh|Rscript)$/;
/** Words after which git takes a command, or a setting that can be one. */
const commandsOfGit =
  /^(?:-c|-x|--exec.*|--extcmd.*|--upload-pack.*|--receive-pack.*|config|run|foreach|filter-branch)$/;

/** Scripts in scripts beyond this depth are not followed. */
const deepest = 6;
/** Commands with more words are not judged, nor commands with more words that can be the start of another one. */
const mostWords = 1000;
const mostWordsToStart = 200;

export function everyCommand(line: string): EveryCommand {
  const search = new CommandSearch();
  const unread = whyUnread(line);
  if (unread === undefined) search.script(line, { depth: 0, isCertain: true });
  else search.doubt(unread);
  const { commands, codes, reason } = search;
  return { line, commands, codes, doubt: reason };
}

interface Place {
  readonly depth: number;
  /** False for text that is only perhaps a script. Its faults do not count. */
  readonly isCertain: boolean;
}

class CommandSearch {
  readonly commands: (readonly ShellPieces[])[] = [];
  readonly codes: string[] = [];
  reason: string | undefined;

  doubt(why: string): void {
    this.reason ??= why;
  }

  script(text: string, place: Place): void {
    if (place.depth > deepest) this.doubt('it contains scripts in scripts in scripts');
    else walkShell(parseShell(text), node => this.#meet(node, place));
  }

  #meet(node: SyntaxNode, place: Place): void {
    switch (node.type) {
      case 'Script':
        if (node.errors?.[0]) this.#doubtAt(place, `it is not valid shell text (${node.errors[0].message})`);
        break;
      case 'Command':
        if (node.name) this.#command(wordsOf(node), node, place);
        break;
      case 'Assignment':
        if (node.value.type === 'Word') this.#setting(fixedText(node.value), place);
        break;
      case 'DoubleQuoted':
        if (isMisread(node)) this.#doubtAt(place, `it contains \`${node.text}\``);
        break;
      case 'Word':
        if (isMisread(node)) this.#doubtAt(place, `it contains \`${node.text}\``);
        this.#quoted(fixedText(node), place);
        break;
      case 'ParameterExpansion':
        if (node.prefix === '!' || node.operation?.type === 'Transform' || node.operation?.type === 'Unknown')
          this.#doubtAt(place, `it contains \`${node.text}\`, which can run its value`);
        break;
      case 'ExtendedGlob':
        this.#doubtAt(place, `it contains \`${node.text}\`, which some shells run`);
        break;
    }
  }

  #doubtAt({ isCertain }: Place, why: string): void {
    if (isCertain) this.doubt(why);
  }

  /** Text of a command in a variable, such as `GIT_SSH_COMMAND='rm x'`. */
  #setting(text: string | undefined, place: Place): void {
    if (text !== undefined && /\s/.test(text)) this.#perhaps(text, place);
  }

  /** Quoted text with a substitution in it: arithmetic, `test -v` and others would run it. */
  #quoted(text: string | undefined, place: Place): void {
    if (text !== undefined && /\$\(|`|\$\{/.test(text)) this.#perhaps(text, place);
  }

  #perhaps(text: string, { depth }: Place): void {
    if (depth < deepest) this.script(text, { depth: depth + 1, isCertain: false });
  }

  #surely(text: string | undefined, place: Place, runner: string): void {
    if (text === undefined) this.#doubtAt(place, `\`${runner}\` runs text that is computed`);
    else this.script(text, { ...place, depth: place.depth + 1 });
  }

  #command(words: readonly Word[], node: Command, place: Place): void {
    const known = words.map(fixedText);
    const name = known[0];
    if (name === undefined || name.startsWith('=')) {
      this.#doubtAt(place, `the name of a program is computed (\`${words[0]?.text ?? ''}\`)`);
    } else if (words.length > mostWords) this.doubt('a command in it has too many words');
    else {
      this.commands.push(words.map(piecesOf));
      this.#runner(programName(name), words, known, node, place);
    }
  }

  #runner(name: string, words: readonly Word[], known: KnownWords, node: Command, place: Place): void {
    if (wrapperPrograms.has(name)) this.#wrapper(words, known, node, place);
    else if (shellPrograms.has(name)) this.#shell(known, node, place);
    else if (takesCommands.has(name)) this.#suffixes(words, node, place);
    else if (interpreters.test(name)) this.#interpreter(known, node);
    else if (name === 'find') this.#find(words, known, node, place);
    else if (name === 'git') this.#git(words, known, node, place);
    else this.#builtin(name, known, place);
  }

  #builtin(name: string, known: KnownWords, place: Place): void {
    const [first, ...others] = known.slice(1).filter(word => word !== '--');
    switch (name) {
      case 'eval': {
        const isComputed = known.includes(undefined);
        this.#surely(isComputed ? undefined : known.slice(1).join(' '), place, name);
        break;
      }
      case 'trap':
        if (known.length > 1) this.#surely(first, place, name);
        break;
      case '.':
      case 'source':
        this.#file(first, place, name);
        break;
      case 'alias':
        for (const word of [first, ...others]) this.#perhaps(word?.replace(/^[^=]*=/, '') ?? '', place);
        break;
    }
  }

  /** Every word of a wrapper may be the name of the command that it starts. */
  #wrapper(words: readonly Word[], known: KnownWords, node: Command, place: Place): void {
    if (innerCommand(known) === 'unknown' && known.includes(undefined))
      this.#doubtAt(place, `\`${known[0]}\` starts a command that is computed`);
    this.#suffixes(words, node, place);
  }

  #suffixes(words: readonly Word[], node: Command, place: Place): void {
    if (words.length > mostWordsToStart) this.doubt(`\`${words[0]?.value}\` has too many words`);
    words.slice(1, mostWordsToStart).forEach((word, index) => {
      const text = fixedText(word);
      if (text === undefined || text.startsWith('-')) return;
      const rest = words.slice(index + 1);
      this.commands.push(rest.map(piecesOf));
      const name = programName(text);
      if (!wrapperPrograms.has(name) && !takesCommands.has(name))
        this.#runner(name, rest, rest.map(fixedText), node, place);
      if (/\s/.test(text)) this.#perhaps(text, place);
    });
  }

  #shell(known: KnownWords, node: Command, place: Place): void {
    const { script, isText } = shellCall(known);
    if (script === undefined) {
      if (!known.some(word => word === '--version' || word === '--help')) this.#input(node, place);
    } else if (isText) this.#surely(known[script], place, known[0] ?? '');
    else this.#file(known[script], place, known[0] ?? '');
  }

  /** A file of commands. Its content is not part of the line. Without a folder, it may be the program of that name. */
  #file(path: string | undefined, place: Place, runner: string): void {
    if (path === undefined || /^\/(?:dev|proc)\//.test(path))
      this.#doubtAt(place, `\`${runner}\` runs commands that are computed`);
    else this.commands.push([[path]]);
  }

  /** A shell that reads commands from its input. */
  #input(node: Command, place: Place): void {
    const texts = node.redirects.map(inputText);
    if (texts.length === 0 || texts.includes(undefined))
      this.#doubtAt(place, 'a shell reads commands from its input');
    for (const text of texts) if (text !== undefined) this.script(text, { ...place, depth: place.depth + 1 });
  }

  #interpreter(known: KnownWords, node: Command): void {
    for (const text of [...known.slice(1), ...node.redirects.map(inputText)])
      if (text !== undefined && /[\s(;'"]/.test(text)) this.codes.push(text);
  }

  #find(words: readonly Word[], known: KnownWords, node: Command, place: Place): void {
    known.forEach((word, index) => {
      const rest = words.slice(index + 1);
      if (/^-(?:exec|execdir|ok|okdir)$/.test(word ?? '') && rest.length > 0)
        this.#command(rest, node, place);
    });
  }

  #git(words: readonly Word[], known: KnownWords, node: Command, place: Place): void {
    if (known.some(word => /(?:^|=)alias\./i.test(word ?? '')))
      this.#doubtAt(place, 'it defines a command of git');
    if (!known.some(word => commandsOfGit.test(word ?? ''))) return;
    this.#suffixes(words, node, place);
    for (const word of known) {
      const value = /^[\w.-]+=!?(.*)$/s.exec(word ?? '')?.[1];
      if (value !== undefined) this.#perhaps(value, place);
    }
  }
}

/** Returns the text of a here-document or here-string, if it is known. */
function inputText(redirection: Command['redirects'][number]): string | undefined {
  switch (redirection.type) {
    case 'HereString':
      return redirection.target && fixedText(redirection.target);
    case 'HereDoc': {
      const { text, parts } = redirection.body;
      const isFixed = parts === undefined || parts.every(({ type }) => type === 'Literal');
      return isFixed ? text : undefined;
    }
    case 'Redirect':
      return undefined;
  }
}
