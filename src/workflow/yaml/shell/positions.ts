import {
  type Command,
  fixedText,
  innerCommand,
  type KnownWords,
  piecesOf,
  programName,
  type SyntaxNode,
  shellCall,
  shellPrograms,
  type Word,
  walkShell,
  wordsOf,
  wrapperPrograms,
} from '../../shell-grammar.ts';

/** Reason why a value cannot stand at a position in a command: the command that would run it, and how. */
export interface CommandRefusal {
  readonly kind: 'name' | 'computed' | 'evaluated' | 'code' | 'input';
  readonly by: string;
}

/** Builtins and programs that evaluate their arguments as code, arithmetic, or names of variables. */
const evaluating = new Set(
  `eval . source trap let declare typeset local read mapfile readarray unset getopts alias compgen
  complete bind enable fc jobs ssh su parallel watch at batch crontab script expect tmux screen`.split(/\s+/),
);
/** Programs whose options and first argument can be code. */
const interpreters =
  /^(?:python[\d.]*|node|nodejs|bun|deno|perl|ruby|php|lua|g?awk|mawk|nawk|sed|gsed|osascript|tclsh)$/;
const inlineCode = /^-{1,2}(?:c|e|E|r|p|pe|ne|eval|print|expression)$/;
/** Programs that start a shell elsewhere. */
const containers = new Set('docker podman nerdctl kubectl lxc vagrant chroot nsenter ssh flatpak'.split(' '));
const runsInGit = /^(?:-x|--exec|--extcmd|--upload-pack|--receive-pack|run|foreach|-c)$/;

/** Judges a value in a word of a command. Returns `undefined` if it is data there. */
export function judgeArgument(command: Command, holder: SyntaxNode): CommandRefusal | undefined {
  const all = wordsOf(command);
  const at = all.findIndex(word => word.pos <= holder.pos && holder.end <= word.end);
  if (at < 0) return undefined;
  const start = startOfCommand(all);
  if (start === 'unknown' || start === at) return { kind: 'name', by: textOf(all[0]) };
  const name = all[start];
  if (name && fixedText(name) === undefined) return { kind: 'computed', by: name.text };
  const handed = handedOver(all.map(fixedText), at);
  if (handed !== undefined) return { kind: 'code', by: handed };
  // The value is an option of a wrapper, such as the user of `sudo`.
  if (start > at) return undefined;
  return judgeInner({ all: all.slice(start), at: at - start, isAssignment: holder.type === 'Assignment' });
}

interface Inner {
  readonly all: readonly Word[];
  readonly at: number;
  readonly isAssignment: boolean;
}

function judgeInner({ all, at, isAssignment }: Inner): CommandRefusal | undefined {
  const known = all.map(fixedText);
  const name = programName(known[0] ?? '');
  const before = known[at - 1] ?? '';
  const isEvaluated = (test: boolean): CommandRefusal | undefined =>
    test ? { kind: 'evaluated', by: name } : undefined;
  if (evaluating.has(name)) return isEvaluated(true);
  if (interpreters.test(name)) {
    const isVariable = name.endsWith('awk') && before === '-v' && startsKnown(all[at]);
    const isCode = inlineCode.test(before) || (at <= firstOperand(name, known) && !isVariable);
    return isCode ? { kind: 'code', by: name } : undefined;
  }
  if (shellPrograms.has(name))
    return at <= (shellCall(known).script ?? known.length) ? { kind: 'code', by: name } : undefined;
  switch (name) {
    case 'export':
    case 'readonly':
      return isEvaluated(!isAssignment || known.some(word => word?.startsWith('-')));
    case 'test':
    case '[':
      return isEvaluated(known.some(word => word === '-v' || word === '-R') || hasNeighbour(known, at));
    case 'printf':
      return isEvaluated(isVariableOfPrintf(all, known, at));
    case 'git':
      return isEvaluated(runsInGit.test(before) && (before !== '-c' || !startsKnown(all[at])));
    case 'find':
      return /^-(?:exec|execdir|ok|okdir)$/.test(before) ? { kind: 'name', by: `find ${before}` } : undefined;
    default:
      return undefined;
  }
}

/** Whether a word starts with fixed text, so that its value cannot be an option or a name. */
const startsKnown = (word: Word | undefined): boolean =>
  word !== undefined && piecesOf(word)[0] !== undefined;

/** Two values next to each other: the first one could be the operator `-v`, which evaluates the second one. */
const hasNeighbour = (known: KnownWords, at: number): boolean =>
  (at > 1 && known[at - 1] === undefined) || (at + 1 < known.length && known[at + 1] === undefined);

/** The value is the variable of `printf -v`, or can become this option because it is the start of the first argument. */
function isVariableOfPrintf(all: readonly Word[], known: KnownWords, at: number): boolean {
  const isStart = !startsKnown(all[at]);
  return (
    (at === 1 && isStart && known.length > 2) ||
    known[at - 1] === '-v' ||
    all[at]?.text.startsWith('-v') === true
  );
}

/** Returns the index of the first argument of an interpreter that is not an option. */
function firstOperand(name: string, known: KnownWords): number {
  const withValue = name.endsWith('awk') ? /^-[vF]$/ : /^-$/;
  let at = 1;
  for (; at < known.length; at++) {
    const word = known[at];
    if (word !== undefined && withValue.test(word)) at++;
    else if (word === undefined || !/^-./.test(word)) return at;
  }
  return at;
}

/** Returns the index of the command behind wrappers such as `env` and `sudo`. */
function startOfCommand(all: readonly Word[]): number | 'unknown' {
  let start = 0;
  for (;;) {
    const known = all.slice(start).map(partlyKnown);
    const name = known[0];
    if (name === undefined) return start === 0 && all.length > 0 ? 0 : 'unknown';
    if (!wrapperPrograms.has(programName(name))) return start;
    const inner = innerCommand(programName(name) === 'timeout' ? withDuration(known) : known);
    if (inner === 'unknown') return 'unknown';
    // A wrapper without a command: the value is one of its own words.
    if (inner === undefined) return known.includes(undefined) ? 'unknown' : start;
    start += inner;
  }
}

/** Returns the text of a word. Of `A=${{ x }}`, the name is enough. */
function partlyKnown(word: Word): string | undefined {
  const [first] = piecesOf(word);
  return fixedText(word) ?? (first !== undefined && /^(?:\w+=|--[\w-]+=)/.test(first) ? first : undefined);
}

/** The first argument of `timeout` that is not an option is a duration, also if it is a value. */
function withDuration(known: KnownWords): KnownWords {
  const at = known.findIndex((word, index) => index > 0 && (word === undefined || !word.startsWith('-')));
  return known.map((word, index) => (index === at ? '1' : word));
}

/** Returns the shell or interpreter to which a value is handed as code, wherever its name stands: `find -exec sh -c`. */
function handedOver(known: KnownWords, at: number): string | undefined {
  const index = known.findIndex((word, from) => {
    if (word === undefined || from >= at) return false;
    const name = programName(word);
    if (shellPrograms.has(name)) {
      const { script, isText } = shellCall(known.slice(from));
      return isText && from + (script ?? 0) === at;
    }
    return from > 0 && interpreters.test(name) && from < at - 1 && inlineCode.test(known[at - 1] ?? '');
  });
  return known[index];
}

/** Whether something below a node runs its input as commands or code: `sh`, `bash -s`, `python3`, `ssh host`. */
export function runsItsInput(node: SyntaxNode): string | undefined {
  let found: string | undefined;
  walkShell(node, each => {
    if (each.type === 'Command') found ??= readerOf(each);
  });
  return found;
}

/** Returns the name of the program if a command runs its input as code. */
export function readerOf(command: Command): string | undefined {
  const all = wordsOf(command);
  const start = startOfCommand(all);
  const known = all.map(fixedText);
  const wrapper = programName(known[0] ?? '');
  if (start === 'unknown' || known.length === 0) return undefined;
  if (wrapper === 'xargs') return readsCode(known, start);
  if (wrapper === 'sudo' && known.some(word => word === '-s' || word === '-i')) return wrapper;
  return readsInput(known.slice(start)) ? known[start] : undefined;
}

/** `xargs` makes its input the command, or with `-I` a part of the text that a shell runs. */
function readsCode(known: KnownWords, start: number): string | undefined {
  const inner = programName(known[start] ?? '');
  if (start > 0 && wrapperPrograms.has(inner) && start === known.length - 1) return 'xargs';
  const replaces = known.some(word => /^-(?:I|i|-replace)/.test(word ?? ''));
  const runsText = known.some(
    word => shellPrograms.has(programName(word ?? '')) || evaluating.has(word ?? ''),
  );
  return runsText && (replaces || !shellCall(known.slice(start)).isText) ? inner : undefined;
}

function readsInput(known: KnownWords): boolean {
  const name = programName(known[0] ?? '');
  const isInput = (word: string | undefined) =>
    word === undefined || /^(?:-|\/dev\/.*|\/proc\/.*)$/.test(word);
  if (shellPrograms.has(name)) {
    const { script } = shellCall(known);
    return script === undefined || isInput(known[script]);
  }
  if (interpreters.test(name) && !/awk$|sed$/.test(name)) {
    const operand = firstOperand(name, known);
    return (
      (operand >= known.length && !known.some(word => inlineCode.test(word ?? ''))) || known[operand] === '-'
    );
  }
  if (name === '.' || name === 'source') return isInput(known[1]);
  if (containers.has(name)) {
    const shell = known.findIndex((word, at) => at > 0 && shellPrograms.has(programName(word ?? '')));
    return shell > 0 ? readsInput(known.slice(shell)) : name === 'ssh' && known.length < 3;
  }
  return /^(?:at|batch|crontab|parallel|su|tclsh|expect)$/.test(name);
}

const textOf = (word: Word | undefined): string => word?.text ?? '';
