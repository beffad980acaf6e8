import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import {
  type Session,
  type SessionFactory,
  type SessionHost,
  suspendSession,
  type TurnEnd,
} from '../../../agents/index.ts';
import type { ErrorData } from '../../../core/index.ts';
import { createGit, type Git } from '../../../git/index.ts';
import { temporaryFolder } from '../../../process/index.ts';
import { ToolCalls } from './tool-calls.ts';

/**
 * Wraps sessions so that one that changes its repository outside its workspace fails with WORKSPACE_ESCAPED. The state
 * of the repository is compared with that before the session. Other sessions, landings and people change it too, so a
 * change counts only if this session can be shown to have made it. Any other change becomes a note.
 *
 * This belongs to the port, not to a lane: a recording contains the result, and a replay serves it.
 */
export const watchEscapes =
  (open: SessionFactory): SessionFactory =>
  (request, host) => {
    const commonDir = request.agent.escapes === 'allow' ? undefined : commonDirOf(request.cwd);
    if (commonDir === undefined) return open(request, host);
    const calls = new ToolCalls(request.cwd);
    const onEvent: SessionHost['onEvent'] = event => {
      calls.add(event);
      host.onEvent(event);
    };
    return new WatchedSession(
      open(request, { ...host, onEvent }),
      new EscapeWatch({ cwd: request.cwd, commonDir, host, calls }),
      message => host.onEvent({ type: 'note', message }),
    );
  };

/**
 * Returns the common git folder of a linked worktree, without the 4 ms that git needs for it. A step without a workspace
 * works in the main checkout itself.
 */
function commonDirOf(folder: string): string | undefined {
  try {
    const [, gitDir] =
      /^gitdir: (.+)\/worktrees\/[^/]+\n?$/.exec(readFileSync(join(folder, '.git'), 'utf8')) ?? [];
    return gitDir === undefined ? undefined : resolve(folder, gitDir);
  } catch {
    return undefined;
  }
}

class WatchedSession implements Session {
  readonly #session: Session;
  readonly #watch: EscapeWatch;
  readonly #note: (message: string) => void;
  #closing: Promise<void> | undefined;

  constructor(session: Session, watch: EscapeWatch, note: (message: string) => void) {
    this.#session = session;
    this.#watch = watch;
    this.#note = note;
  }

  async next(...answer: Parameters<Session['next']>): Promise<TurnEnd> {
    await this.#watch.begin();
    const turn = await this.#session.next(...answer);
    if (turn.kind !== 'end' || turn.result.kind === 'cancelled') return turn;
    // A process that the agent left running could still change something.
    await this.close();
    const { escapes, others } = await this.#watch.end();
    if (others.length > 0)
      this.#note(`changed during the session, but not attributable to it: ${listed(others)}`);
    if (escapes.length === 0) return turn;
    const { sessionId, usage, denials } = turn.result;
    const soFar = { usage, denials, ...(sessionId === undefined ? {} : { sessionId }) };
    return { ...turn, result: { kind: 'failed', error: escaped(escapes), ...soFar } };
  }

  suspend(hurry?: AbortSignal): void {
    suspendSession(this.#session, hurry);
  }

  cancel(): Promise<void> {
    return this.#session.cancel();
  }

  close(): Promise<void> {
    this.#closing ??= this.#session.close();
    return this.#closing;
  }
}

const mostNamed = 10;

const listed = (changes: readonly string[]): string =>
  `${changes.slice(0, mostNamed).join('; ')}${changes.length > mostNamed ? ` and ${changes.length - mostNamed} more` : ''}`;

const escaped = (escapes: readonly string[]): ErrorData => ({
  code: 'WORKSPACE_ESCAPED',
  message: `the agent changed the repository outside its workspace: ${listed(escapes)}`,
  hint: 'its own work is kept on its branch; review and undo the changes, tell the agent to work in its folder only, or write `escapes: allow` into its definition',
});

/** State of a repository outside one workspace. */
interface OutsideState {
  /** Full name of the branch that is checked out in the workspace; empty if HEAD is detached. */
  readonly branch: string;
  /** Commits of branches, tags and remote-tracking branches. */
  readonly refs: ReadonlyMap<string, string>;
  /** Status of changed files in the main checkout, by path. */
  readonly files: ReadonlyMap<string, string>;
  readonly config: string;
  /** Paths of linked worktrees. */
  readonly worktrees: ReadonlySet<string>;
}

interface RepositoryPlace {
  readonly workspace: Git;
  readonly commonDir: string;
  /** Git for the main checkout; absent in a bare repository. */
  readonly main: Git | undefined;
}

interface EscapeWatchOptions extends Pick<RepositoryPlace, 'commonDir'> {
  /** Absolute path of the workspace. */
  readonly cwd: string;
  readonly host: SessionHost;
  readonly calls: ToolCalls;
}

/** Compares a repository before and after a session. A failure to read it is no escape. */
class EscapeWatch {
  readonly #options: EscapeWatchOptions;
  #beginning:
    | Promise<{ readonly place: RepositoryPlace; readonly state: OutsideState } | undefined>
    | undefined;

  constructor(options: EscapeWatchOptions) {
    this.#options = options;
  }

  async begin(): Promise<void> {
    this.#beginning ??= this.#look().catch(() => undefined);
    await this.#beginning;
  }

  /** Returns the changes that the session made, and those that nothing attributes to it. */
  async end(): Promise<{ readonly escapes: readonly string[]; readonly others: readonly string[] }> {
    const before = await this.#beginning;
    if (!before) return { escapes: [], others: [] };
    try {
      const after = await stateOf(before.place);
      const { calls } = this.#options;
      const changes = await changesIn(before.place, { before: before.state, after, calls });
      const textsOf = (isOfSession: boolean) =>
        changes.filter(change => change.isOfSession === isOfSession).map(({ text }) => text);
      return { escapes: textsOf(true), others: textsOf(false) };
    } catch {
      return { escapes: [], others: [] };
    }
  }

  async #look() {
    const { cwd, commonDir, host } = this.#options;
    const workspace = createGit({ cwd, inheritEnv: host.inheritEnv });
    const root = dirname(commonDir);
    const hasCheckout = basename(commonDir) === '.git' && existsSync(join(root, '.git'));
    const place = { workspace, commonDir, main: hasCheckout ? workspace.with({ cwd: root }) : undefined };
    return { place, state: await stateOf(place) };
  }
}

async function stateOf({ workspace, commonDir, main }: RepositoryPlace): Promise<OutsideState> {
  const format = '--format=%(refname) %(objectname) %(HEAD)';
  // A file-system monitor is a program, which a session could have configured.
  const status = [
    '-c',
    'core.fsmonitor=false',
    '--no-optional-locks',
    'status',
    '--porcelain',
    '-z',
    '--no-renames',
  ];
  const [refs, files] = await Promise.all([
    workspace.ok(['for-each-ref', format, 'refs/heads', 'refs/tags', 'refs/remotes']),
    main?.ok([...status, '--untracked-files=normal']) ?? '',
  ]);
  const listed = refs
    .split('\n')
    .filter(Boolean)
    .map(line => line.split(' '));
  return {
    branch: listed.find(([, , head]) => head === '*')?.[0] ?? '',
    refs: new Map(listed.map(([name = '', commit = '']) => [name, commit])),
    files: new Map(
      files
        .split('\0')
        .filter(Boolean)
        .map(entry => [entry.slice(3), entry.slice(0, 2)]),
    ),
    config: readFileSync(join(commonDir, 'config'), 'utf8'),
    worktrees: worktreesIn(commonDir),
  };
}

function worktreesIn(commonDir: string): ReadonlySet<string> {
  const folder = join(commonDir, 'worktrees');
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return new Set(
    names.flatMap(name => {
      try {
        return [dirname(readFileSync(join(folder, name, 'gitdir'), 'utf8').trim())];
      } catch {
        return [];
      }
    }),
  );
}

interface StateComparison {
  readonly before: OutsideState;
  readonly after: OutsideState;
  readonly calls: ToolCalls;
}

/** A change of the repository outside the workspace. Changes that Reprise makes itself are left out. */
interface OutsideChange {
  readonly text: string;
  /** Whether the session can be shown to have made it. */
  readonly isOfSession: boolean;
}

async function changesIn(
  place: RepositoryPlace,
  compared: StateComparison,
): Promise<readonly OutsideChange[]> {
  const { refs, hasLanded } = await changedRefs(place, compared);
  const files = changedFiles(place, compared);
  return [
    ...refs,
    // A landing updates the main checkout too.
    ...(hasLanded ? files.filter(({ isOfSession }) => isOfSession) : files),
    ...(await changedSettings(place, compared)),
    ...changedWorktrees(compared),
  ];
}

/** A ref is changed by the session if it now holds a commit made in this workspace, or if a command names it. */
async function changedRefs(place: RepositoryPlace, { before, after, calls }: StateComparison) {
  const changed = [...new Set([...before.refs.keys(), ...after.refs.keys()])]
    .map(name => ({ name, from: before.refs.get(name), to: after.refs.get(name) }))
    .filter(({ name, from, to }) => name !== before.branch && from !== to);
  if (changed.length === 0) return { refs: [], hasLanded: false };
  const { workspace } = place;
  const made = await madeIn(workspace);
  const refs: OutsideChange[] = [];
  let hasLanded = false;
  for (const { name, from, to } of changed) {
    // A new branch that is checked out here is the session's own work, as Reprise saves it.
    if (name === after.branch && from === undefined) continue;
    // Copies of a step make identical commits: the same content, at the same time, on the same base.
    const isOfCopy = name.startsWith('refs/heads/reprise/');
    const holds = to !== undefined && !isOfCopy && (await holdsAny(workspace, { from, to }, made));
    const isNamed = !name.startsWith('refs/remotes/') && calls.changesRef(shortName(name));
    const isOfSession = holds || isNamed;
    if (!isOfSession && isOfCopy) continue;
    if (!isOfSession && to !== undefined && (await isLanding(workspace, name))) {
      hasLanded = true;
      continue;
    }
    const text = `${kindOf(name)} ${shortName(name)} ${verb(from, to)}${holds ? ' to a commit of this session' : ''}`;
    refs.push({ text, isOfSession });
  }
  return { refs, hasLanded };
}

/** Whether Reprise moved the branch last. */
async function isLanding(git: Git, ref: string): Promise<boolean> {
  const { stdout } = await git.run(['reflog', '-1', '--format=%gs', ref, '--']);
  return stdout.startsWith('reprise: ');
}

const verb = (from: string | undefined, to: string | undefined): string =>
  from === undefined ? 'was created and set' : to === undefined ? 'was deleted' : 'was moved';

const shortName = (ref: string): string => ref.replace(/^refs\/(?:heads|tags|remotes)\//, '');

const kindOf = (ref: string): string =>
  ref.startsWith('refs/tags/') ? 'tag' : ref.startsWith('refs/remotes/') ? 'remote branch' : 'branch';

/** Returns the commits that were made in a worktree, from the log of its HEAD. A commit that it only visited is not one. */
async function madeIn(workspace: Git): Promise<ReadonlySet<string>> {
  const { stdout } = await workspace.run(['log', '--walk-reflogs', '--format=%H %gs', 'HEAD']);
  const lines = stdout
    .split('\n')
    .filter(line =>
      /^\w+ (?:commit|cherry-pick|revert|am|rebase.*\((?:pick|squash|fixup|reword)\)|.*: Merge made)/.test(
        line,
      ),
    );
  return new Set(lines.map(line => line.slice(0, line.indexOf(' '))));
}

const mostCommits = 1000;

async function holdsAny(
  git: Git,
  { from, to }: { readonly from: string | undefined; readonly to: string },
  made: ReadonlySet<string>,
): Promise<boolean> {
  if (made.size === 0) return false;
  if (made.has(to)) return true;
  const exclude = from === undefined ? [] : [`^${from}`];
  const { stdout } = await git.run(['rev-list', `--max-count=${mostCommits}`, to, ...exclude]);
  return from !== undefined && stdout.split('\n').some(commit => made.has(commit));
}

function changedFiles(
  { main }: RepositoryPlace,
  { before, after, calls }: StateComparison,
): readonly OutsideChange[] {
  if (!main) return [];
  const changed = [...new Set([...before.files.keys(), ...after.files.keys()])].filter(
    path => before.files.get(path) !== after.files.get(path) && path !== '.reprise/',
  );
  return changed.map(path => ({
    text: `${path} in the main checkout`,
    isOfSession: calls.namesFile(main.cwd, path),
  }));
}

async function changedSettings(
  place: RepositoryPlace,
  { before, after, calls }: StateComparison,
): Promise<readonly OutsideChange[]> {
  if (before.config === after.config) return [];
  const [was, is] = await Promise.all([settingsIn(place, before.config), settingsIn(place, after.config)]);
  const own = `branch.${shortName(before.branch)}.`.toLowerCase();
  return [...new Set([...was.keys(), ...is.keys()])]
    .filter(key => was.get(key) !== is.get(key) && !key.toLowerCase().startsWith(own))
    .map(key => ({
      text: `${key} in the git configuration`,
      isOfSession: calls.mentions(key) || calls.mentions(join(place.commonDir, 'config')),
    }))
    .filter(({ text, isOfSession }) => isOfSession || !text.startsWith('branch.reprise/'));
}

/** Lets git read a copy of the configuration, so that a broken one cannot hide anything. */
async function settingsIn(
  { workspace }: RepositoryPlace,
  text: string,
): Promise<ReadonlyMap<string, string>> {
  const folder = temporaryFolder('config');
  try {
    const file = join(folder, 'config');
    writeFileSync(file, text);
    const { stdout } = await workspace.run(['config', '--no-includes', '--file', file, '--list', '-z']);
    const settings = new Map<string, string>();
    for (const entry of stdout.split('\0').filter(Boolean)) {
      const [key = '', ...value] = entry.split('\n');
      settings.set(key, `${settings.get(key) ?? ''}\n${value.join('\n')}`);
    }
    return settings;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Reprise creates and removes worktrees itself all the time, so only those that the session names count. */
const changedWorktrees = ({ before, after, calls }: StateComparison): readonly OutsideChange[] =>
  [
    ...[...after.worktrees]
      .filter(path => !before.worktrees.has(path))
      .map(path => ({ path, verb: 'created' })),
    ...[...before.worktrees]
      .filter(path => !after.worktrees.has(path))
      .map(path => ({ path, verb: 'removed' })),
  ]
    .filter(({ path }) => calls.namesWorktree(path))
    .map(({ path, verb }) => ({ text: `worktree ${path} was ${verb}`, isOfSession: true }));
