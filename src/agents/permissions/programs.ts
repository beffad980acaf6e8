import {
  innerCommand,
  type KnownWords,
  programName,
  shellCall,
  shellPrograms,
  wrapperPrograms,
} from '../../workflow/shell-grammar.ts';

/** Builtins and programs that evaluate their arguments, or that change what later commands mean. */
const evaluating: ReadonlySet<string> = new Set(
  `eval . source trap alias export readonly declare typeset local let read mapfile readarray unset getopts compgen
  complete bind enable fc hash set shopt parallel watch ssh su script at batch crontab chroot nsenter unshare flock
  expect tmux screen`.split(/\s+/),
);

/** Words of git that name a command to run, or a setting that can. */
const runsInGit =
  /^(?:-c|-x|-O.*|--config-env.*|--exec.*|--upload-pack.*|--receive-pack.*|--ext-diff|--open-files-in-pager.*|--extcmd.*|config|run|foreach|filter-branch|difftool|mergetool)$/;

const runsInFind = /^-(?:exec|execdir|ok|okdir)$/;

/**
 * Whether a word of a command that a wildcard matched decides which program runs: `rm` in `env rm`, `xargs rm`,
 * `find -exec rm`, `sh -c 'rm'`. The first `fixed` words are written in the rule.
 */
export function runsUnnamed(words: KnownWords, fixed: number): boolean {
  const isFree = (index: number) => index >= fixed;
  const isAnyFree = (test: (word: string | undefined, index: number) => boolean) =>
    words.some((word, index) => isFree(index) && test(word, index));
  const name = programName(words[0] ?? '');
  if (isFree(0)) return evaluating.has(name) || shellPrograms.has(name) || wrapperPrograms.has(name);
  if (evaluating.has(name)) return isFree(words.length - 1);
  if (shellPrograms.has(name)) return isFree(shellCall(words).script ?? words.length);
  if (wrapperPrograms.has(name)) {
    const inner = innerCommand(words);
    if (inner === 'unknown') return isFree(words.length - 1);
    return inner !== undefined && (isFree(inner) || runsUnnamed(words.slice(inner), fixed - inner));
  }
  switch (name) {
    case 'find':
      return isAnyFree(
        (word, index) => runsInFind.test(word ?? '-exec') || runsInFind.test(words[index - 1] ?? ''),
      );
    case 'git':
      return isAnyFree(word => runsInGit.test(word ?? '-c'));
    case 'printf':
      return isAnyFree((word, index) => (word === undefined ? index === 1 : word.startsWith('-v')));
    case 'test':
    case '[':
      return isAnyFree(word => word === '-v' || word === '-R');
    default:
      return false;
  }
}

/** Options of a program that only reads: flags, options with a value, and long options. */
interface Filter {
  readonly flags: string;
  readonly withValue: string;
  readonly long: readonly string[];
}

/** Everything that is not listed here can write a file, start a program, or read a list of files. */
const filters: ReadonlyMap<string, Filter> = new Map([
  ['head', { flags: 'qvz', withValue: 'nc', long: ['lines', 'bytes', 'quiet', 'silent', 'verbose'] }],
  ['tail', { flags: 'qvz', withValue: 'nc', long: ['lines', 'bytes', 'quiet', 'silent', 'verbose'] }],
  [
    'grep',
    {
      flags: 'EFGPiyvwxcoqsbHhLlnTZzarIU',
      withValue: 'eABCm',
      long: 'regexp after-context before-context context max-count ignore-case invert-match word-regexp line-regexp count only-matching quiet silent no-messages line-number with-filename no-filename files-with-matches files-without-match extended-regexp fixed-strings perl-regexp basic-regexp color colour text recursive include exclude exclude-dir'.split(
        ' ',
      ),
    },
  ],
  ['wc', { flags: 'clmwL', withValue: '', long: ['lines', 'words', 'bytes', 'chars', 'max-line-length'] }],
  [
    'sort',
    {
      flags: 'bdfghiMnRrVcCmsuz',
      withValue: 'kt',
      long: 'reverse unique numeric-sort human-numeric-sort version-sort general-numeric-sort ignore-case key field-separator stable check'.split(
        ' ',
      ),
    },
  ],
  ['cat', { flags: 'AbeEnstTuv', withValue: '', long: ['number', 'show-all', 'squeeze-blank'] }],
]);

/** Returns the files that a filter such as `tail -5` reads. Returns `undefined` if the command may do more than read. */
export function filesReadBy(words: KnownWords): readonly string[] | undefined {
  const [name = '', ...rest] = words;
  const filter = filters.get(name);
  if (!filter || rest.includes(undefined)) return undefined;
  const operands: string[] = [];
  let needsPattern = name === 'grep';
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at] ?? '';
    if (word === '--') {
      operands.push(...rest.slice(at + 1).map(each => each ?? ''));
      break;
    }
    if (!/^-./.test(word) || /^-\d+$/.test(word)) {
      if (!word.startsWith('-') || word === '-') operands.push(word);
      continue;
    }
    const used = optionOf(filter, word);
    if (used === undefined) return undefined;
    if (used.name === 'e' || used.name === 'regexp') needsPattern = false;
    if (used.takesNext) at++;
  }
  return operands.slice(needsPattern ? 1 : 0).filter(operand => operand !== '-');
}

interface UsedOption {
  readonly name: string;
  readonly takesNext: boolean;
}

function optionOf({ flags, withValue, long }: Filter, word: string): UsedOption | undefined {
  const longName = /^--([\w-]+)(=?)/.exec(word);
  // Only `--name=value`: a long option that takes the next word as its value could hide a file.
  if (longName) {
    const name = longName[1] ?? '';
    return long.includes(name) ? { name, takesNext: false } : undefined;
  }
  for (const [at, letter] of [...word.slice(1)].entries()) {
    if (withValue.includes(letter)) return { name: letter, takesNext: at === word.length - 2 };
    if (!flags.includes(letter)) return undefined;
  }
  return { name: word, takesNext: false };
}
