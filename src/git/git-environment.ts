export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Variables that lead git to another repository, index or configuration than the folder says. They are set when
 * Reprise itself was started by a git hook.
 */
const misleading = new Set([
  'GIT_ALTERNATE_OBJECT_DIRECTORIES',
  'GIT_COMMON_DIR',
  'GIT_CONFIG',
  'GIT_CONFIG_COUNT',
  'GIT_CONFIG_PARAMETERS',
  'GIT_DIFF_OPTS',
  'GIT_DIR',
  'GIT_EXTERNAL_DIFF',
  'GIT_GRAFT_FILE',
  'GIT_IMPLICIT_WORK_TREE',
  'GIT_INDEX_FILE',
  'GIT_INDEX_VERSION',
  'GIT_INTERNAL_SUPER_PREFIX',
  'GIT_NAMESPACE',
  'GIT_NO_REPLACE_OBJECTS',
  'GIT_OBJECT_DIRECTORY',
  'GIT_PREFIX',
  'GIT_QUARANTINE_PATH',
  'GIT_REFLOG_ACTION',
  'GIT_REPLACE_REF_BASE',
  'GIT_SHALLOW_FILE',
  'GIT_WORK_TREE',
]);

const fixed: Environment = {
  LC_ALL: 'C',
  LANGUAGE: 'C',
  TZ: 'UTC',
  GIT_EDITOR: ':',
  GIT_SEQUENCE_EDITOR: ':',
  GIT_MERGE_AUTOEDIT: 'no',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_PAGER: 'cat',
  GIT_TERMINAL_PROMPT: '0',
};

/** The environment of every git command: the same words, times and manners wherever Reprise runs. */
export function gitEnvironment(inherited: Environment, own: Environment): Record<string, string | undefined> {
  const kept = Object.entries(inherited).filter(
    ([name]) => !misleading.has(name) && !/^GIT_CONFIG_(KEY|VALUE)_/.test(name),
  );
  return { ...Object.fromEntries(kept), ...own, ...fixed };
}

/**
 * Git must leave no process behind that repacks while others commit, start no daemon that outlives it, ask nobody
 * for a passphrase, and not follow a user's settings into behaviour that other machines do not have.
 */
const settings = {
  'gc.auto': '0',
  'gc.autoDetach': 'false',
  'maintenance.auto': 'false',
  'commit.gpgSign': 'false',
  'core.fsmonitor': 'false',
  'merge.autoStash': 'false',
  'merge.verifySignatures': 'false',
  'submodule.recurse': 'false',
  'worktree.guessRemote': 'false',
} as const;

const settingArguments = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]);

/** What stands between `git` and the command. Without hooks, no code of the repository runs. */
export const gitArguments = (hooks: 'run' | 'skip'): readonly string[] =>
  hooks === 'run' ? settingArguments : [...settingArguments, '-c', 'core.hooksPath=/dev/null'];
