import { existsSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';
import {
  type AgentEvent,
  type Session,
  type SessionFactory,
  type SessionHost,
  suspendSession,
  type TurnEnd,
} from '../../../agents/index.ts';
import type { ErrorData } from '../../../core/index.ts';
import { createGit, type Git } from '../../../git/index.ts';
import { temporaryFolder } from '../../../process/index.ts';

/**
 * Wraps sessions so that one that changes its repository outside its workspace fails with WORKSPACE_ESCAPED. The state
 * of the repository is compared with that before the session. Other sessions, landings and people change it too, so a
 * change counts only if this session can be shown to have made it.
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
  #closing: Promise<void> | undefined;

  constructor(session: Session, watch: EscapeWatch) {
    this.#session = session;
    this.#watch = watch;
  }

  async next(...answer: Parameters<Session['next']>): Promise<TurnEnd> {
    await this.#watch.begin();
    const turn = await this.#session.next(...answer);
    if (turn.kind !== 'end' || turn.result.kind === 'cancelled') return turn;
    // A process that the agent left running could still change something.
    await this.close();
    const escapes = await this.#watch.end();
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

const escaped = (escapes: readonly string[]): ErrorData => ({
  code: 'WORKSPACE_ESCAPED',
  message: `the agent changed the repository outside its workspace: ${escapes.slice(0, mostNamed).join('; ')}${escapes.length > mostNamed ? ` and ${escapes.length - mostNamed} more` : ''}`,
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

  async end(): Promise<readonly string[]> {
    const before = await this.#beginning;
    if (!before) return [];
    try {
      const after = await stateOf(before.place);
      return await escapesOf(before.place, { before: before.state, after, calls: this.#options.calls });
    } catch {
      return [];
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

async function escapesOf(place: RepositoryPlace, compared: StateComparison): Promise<readonly string[]> {
  const refs = await escapedRefs(place, compared);
  return [
    ...refs.map(({ text }) => text),
    ...escapedFiles(place, compared),
    ...(await escapedSettings(place, compared)),
    ...escapedWorktrees(compared),
  ];
}

/** Finds refs that now hold a commit made in this workspace, or that a command of the session names. */
async function escapedRefs(place: RepositoryPlace, { before, after, calls }: StateComparison) {
  const changed = [...new Set([...before.refs.keys(), ...after.refs.keys()])]
    .map(name => ({ name, from: before.refs.get(name), to: after.refs.get(name) }))
    .filter(({ name, from, to }) => name !== before.branch && from !== to);
  if (changed.length === 0) return [];
  const { workspace } = place;
  const made = await madeIn(workspace);
  const found: { readonly name: string; readonly text: string }[] = [];
  for (const { name, from, to } of changed) {
    // A new branch that is checked out here is the session's own work, as Reprise saves it.
    if (name === after.branch && from === undefined) continue;
    // Copies of a step make identical commits: the same content, at the same time, on the same base.
    const isOfCopy = name.startsWith('refs/heads/reprise/');
    const holds = to !== undefined && !isOfCopy && (await holdsAny(workspace, { from, to }, made));
    const isNamed = !name.startsWith('refs/remotes/') && calls.changesRef(shortName(name));
    if (holds || isNamed)
      found.push({
        name,
        text: `${kindOf(name)} ${shortName(name)} ${verb(from, to)}${holds ? ' to a commit of this session' : ''}`,
      });
  }
  return found;
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

function escapedFiles(
  { main }: RepositoryPlace,
  { before, after, calls }: StateComparison,
): readonly string[] {
  if (!main) return [];
  const changed = [...new Set([...before.files.keys(), ...after.files.keys()])].filter(
    path => before.files.get(path) !== after.files.get(path),
  );
  return changed.filter(path => calls.namesFile(main.cwd, path)).map(path => `${path} in the main checkout`);
}

async function escapedSettings(
  place: RepositoryPlace,
  { before, after, calls }: StateComparison,
): Promise<readonly string[]> {
  if (before.config === after.config) return [];
  const [was, is] = await Promise.all([settingsIn(place, before.config), settingsIn(place, after.config)]);
  const own = `branch.${shortName(before.branch)}.`.toLowerCase();
  return [...new Set([...was.keys(), ...is.keys()])]
    .filter(key => was.get(key) !== is.get(key) && !key.toLowerCase().startsWith(own))
    .filter(key => calls.mentions(key) || calls.mentions(join(place.commonDir, 'config')))
    .map(key => `${key} in the git configuration`);
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

const escapedWorktrees = ({ before, after, calls }: StateComparison): readonly string[] => [
  ...[...after.worktrees]
    .filter(path => !before.worktrees.has(path) && calls.namesWorktree(path))
    .map(path => `worktree ${path} was created`),
  ...[...before.worktrees]
    .filter(path => !after.worktrees.has(path) && calls.namesWorktree(path))
    .map(path => `worktree ${path} was removed`),
];

const readingTools = /^(?:Read|Grep|Glob|LS|WebFetch|WebSearch|TodoWrite|NotebookRead)$/i;
const mostCalls = 10_000;
const longestText = 20_000;

/** What the tools of a session were called with. */
export class ToolCalls {
  readonly #folder: string;
  /** Paths, commands and titles. File contents are left out: they may name anything. */
  readonly #texts: string[] = [];
  readonly #names = new Set<string>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  add(event: AgentEvent): void {
    if (event.type !== 'tool-start' || readingTools.test(event.name) || this.#texts.length >= mostCalls)
      return;
    this.#names.add(event.name);
    for (const text of [event.title ?? '', ...textsIn(event.input)])
      if (text !== '') this.#texts.push(text.slice(0, longestText));
  }

  mentions(text: string): boolean {
    return this.#texts.some(given => given.toLowerCase().includes(text.toLowerCase()));
  }

  changesRef(name: string): boolean {
    const word = new RegExp(`(?<![\\w./-])(?:refs/(?:heads|tags)/)?${escapeText(name)}(?![\\w./-])`);
    return this.#texts.some(
      text =>
        /\bgit\b.*\b(?:branch|tag|update-ref|reset|push|commit|merge|rebase|checkout|switch)\b/s.test(text) &&
        word.test(text),
    );
  }

  /** Whether a call names a file of the main checkout: by its path, or relative to a folder that the call names. */
  namesFile(root: string, path: string): boolean {
    return this.#texts.some(text => {
      const words = wordsOf(text);
      const places = [
        this.#folder,
        ...words.map(word => resolve(this.#folder, word)).filter(this.#isOutside(root)),
      ];
      const target = join(root, path);
      return words.some(
        word =>
          places.some(place => this.#isNamed(root, resolve(place, word), target)) ||
          (/git-common-dir|worktree list|\.\.\//.test(text) && resolve('/', word) === resolve('/', path)),
      );
    });
  }

  /** Whether the path is inside the main checkout, but not in the workspace. */
  #isOutside(root: string): (path: string) => boolean {
    return path => isBelow(root, realPath(path)) && !isBelow(this.#folder, path);
  }

  /** Whether a path is the file, or contains it and not the workspace. Git shows an untracked folder instead of its files. */
  #isNamed(root: string, path: string, target: string): boolean {
    const named = path.replace(/\/$/, '');
    if (isBelow(target.replace(/\/$/, ''), named)) return target.endsWith('/') || named === target;
    return named !== root && isBelow(named, target) && isBelow(root, named) && !isBelow(named, this.#folder);
  }

  namesWorktree(path: string): boolean {
    if (this.#names.has('EnterWorktree') && path.includes('/.claude/worktrees/')) return true;
    return this.#texts.some(
      text =>
        /\bworktree\b/.test(text) &&
        wordsOf(text).some(word => realPath(resolve(this.#folder, word)) === realPath(path)),
    );
  }
}

const isBelow = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(`${folder}${sep}`);

const realPath = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
};

const wordsOf = (text: string): readonly string[] => text.split(/[\s'"`;&|<>()=]+/).filter(Boolean);

const escapeText = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

const telling = /path|file|command|cmd|script|title|arg|dir|cwd|name/i;

function textsIn(input: unknown, key = 'command'): readonly string[] {
  if (typeof input === 'string') return telling.test(key) && !/content/i.test(key) ? [input] : [];
  if (Array.isArray(input)) return input.flatMap(item => textsIn(item, key));
  if (typeof input !== 'object' || input === null) return [];
  return Object.entries(input).flatMap(([name, value]) => textsIn(value, name));
}
