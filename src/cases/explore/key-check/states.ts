import { createHash } from 'node:crypto';
import { type Dirent, existsSync, lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type Git, parseRecord, readIfThere } from '../../../git/index.ts';
import { branchRef, type Model } from '../../../git/model/index.ts';
import { allWorktrees, gitDirOf } from '../../../git/workspace/index.ts';
import type { EventStore } from '../../../store/index.ts';
import { type Database, openDatabase } from '../../../store/sqlite/index.ts';
import { isKeptApart, type SharedFact } from './check.ts';

type Facts = readonly (readonly [string, SharedFact])[];

interface WorkspaceFolder {
  readonly path: string;
  /** Private git folder of the worktree; `undefined` if its folder was deleted. */
  readonly gitDir: string | undefined;
  /** Branch that is checked out. */
  readonly branch: string | undefined;
}

/** Reads the state of a repository and its workspaces, except objects, with the keys that stand for it. */
export class GitState {
  readonly #root: string;
  readonly #commonDir: string;
  readonly #git: Git;
  /** Contents of files, cached until inode, size, times or mode change. */
  readonly #known = new Map<string, { readonly stamp: string; readonly value: string }>();

  /** The repository must have the layout that `git init` creates. */
  constructor(git: Git) {
    this.#git = git;
    this.#root = git.cwd;
    this.#commonDir = join(git.cwd, '.git');
  }

  async facts(): Promise<Facts> {
    const repository = { root: this.#root, commonDir: this.#commonDir, git: this.#git };
    const [main, ...linked] = await allWorktrees(repository);
    const workspaces = await Promise.all(
      linked.map(async ({ path, branch }) => ({ path, branch, gitDir: await gitDirOf(repository, path) })),
    );
    const head = JSON.stringify([main?.branch, main?.commit]);
    const facts: (readonly [string, SharedFact])[] = [
      ['HEAD', { keys: ['ref:HEAD'], value: head }],
      ...(await this.#refs(workspaces)),
    ];
    for (const { path, gitDir } of workspaces)
      facts.push([`the worktree ${this.#shown(path)}`, { keys: ['gitworktrees'], value: String(gitDir) }]);
    const paths = workspaces.map(({ path }) => path);
    for (const path of [...paths, this.#root])
      for (const file of filesBelow(path, paths)) facts.push(...(await this.#readingOf(file, workspaces)));
    return facts;
  }

  async #refs(workspaces: readonly WorkspaceFolder[]): Promise<Facts> {
    const lines = (await this.#git.ok(['for-each-ref', '--format=%(objectname) %(refname)'])).split('\n');
    return lines.flatMap(line => {
      const [id = '', ref = ''] = line.split(' ');
      return ref === '' || isKeptApart(ref) ? [] : [[ref, { keys: refKeys(ref, workspaces), value: id }]];
    });
  }

  async #readingOf(file: string, workspaces: readonly WorkspaceFolder[]): Promise<Facts> {
    const inGit = relative(this.#commonDir, file);
    if (!inGit.startsWith('..')) return this.#inGitFolder(inGit, file, workspaces);
    const workspace = workspaces.find(({ path }) => file.startsWith(`${path}/`));
    const name = this.#shown(file);
    // Files for a single agent to read.
    const isScratch = name.startsWith('.reprise/workspaces/.scratch/');
    const keys = isScratch ? undefined : this.#checkedOut;
    return this.#factOf(file, name, workspace ? [`wt:${workspace.path}`] : keys);
  }

  async #factOf(file: string, name: string, keys: readonly string[] | undefined): Promise<Facts> {
    return keys ? [[name, { keys, value: await this.#contentOf(file) }]] : [];
  }

  get #checkedOut(): readonly string[] {
    return ['ref:HEAD', `wt:${this.#root}`];
  }

  async #inGitFolder(name: string, file: string, workspaces: readonly WorkspaceFolder[]): Promise<Facts> {
    if (isKeptApart(name) || isOfRefs(name)) return [];
    if (name.startsWith('reprise/branches/')) return this.#branchRecord(file);
    const own = workspaces.find(({ gitDir }) => gitDir !== undefined && file.startsWith(`${gitDir}/`));
    return this.#factOf(file, `.git/${name}`, own ? [`wt:${own.path}`] : this.#keysInGitFolder(name));
  }

  #keysInGitFolder(name: string): readonly string[] | undefined {
    const [, agent] = /^reprise\/locks\/agents\/([^/]+)\//.exec(name) ?? [];
    if (agent !== undefined) return [`slot:${agent}`];
    // `StoreRows` reads the database; logs and journals belong to a single run.
    if (/^reprise\/(reprise\.db|adhoc|artifacts|journal|logs|scratch)\b/.test(name)) return undefined;
    if (name.startsWith('reprise/locks/land/')) return ['lock:land'];
    // This lock is held only within one effect.
    if (name.startsWith('reprise/locks/')) return undefined;
    return /^(reprise\/)?worktrees\//.test(name) ? ['gitworktrees'] : this.#checkedOut;
  }

  #branchRecord(file: string): Facts {
    const { landed, ...made } = parseRecord(readIfThere(file)) ?? {};
    const branch = String(made['branch']);
    const record = [
      `the record of ${branch}`,
      { keys: [`ref:${branch}`], value: JSON.stringify(made) },
    ] as const;
    if (landed === undefined) return [record];
    const value = JSON.stringify(landed);
    return [record, [`the note that ${branch} has landed`, { keys: [`landed:${branch}`], value }]];
  }

  async #contentOf(file: string): Promise<string> {
    const stat = lstatSync(file, { bigint: true, throwIfNoEntry: false });
    if (!stat) return 'missing';
    const stamp = `${stat.ino} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs} ${stat.mode}`;
    const known = this.#known.get(file);
    if (known?.stamp === stamp) return known.value;
    if (file.endsWith('/holder.json')) return JSON.stringify({ ...parseRecord(readIfThere(file)), beat: 0 });
    const isIndex = file.startsWith(`${this.#commonDir}/`) && file.endsWith('/index');
    const value = stat.isSymbolicLink()
      ? readlinkSync(file)
      : short(isIndex ? await this.#entriesOf(file) : readFileSync(file), stat.mode);
    this.#known.set(file, { stamp, value });
    return value;
  }

  /** Paths, modes and ids of an index, without the metadata that git caches about files on disk. */
  #entriesOf(index: string): Promise<string> {
    return this.#git.with({ env: { GIT_INDEX_FILE: index } }).ok(['ls-files', '--stage', '-z']);
  }

  #shown(path: string): string {
    return relative(this.#root, path);
  }
}

/** Whether git keeps refs in the file, which `for-each-ref` reads. */
const isOfRefs = (name: string): boolean =>
  name.startsWith('refs/') || name === 'HEAD' || name === 'packed-refs';

/** Keys of a ref. The key of a workspace also covers the branch that is checked out there. */
function refKeys(ref: string, workspaces: readonly WorkspaceFolder[]): readonly string[] {
  const [, branch] = /^refs\/heads\/(.+)$/.exec(ref) ?? [];
  const [, remote] = /^refs\/remotes\/(.+)$/.exec(ref) ?? [];
  if (branch === undefined) return [remote === undefined ? `ref:${ref}` : `remote:${remote}`];
  const inside = workspaces.filter(workspace => workspace.branch === branch);
  return [`ref:${branch}`, ...inside.map(({ path }) => `wt:${path}`)];
}

const smallBytes = 200;

/** Returns the content with its executable bit, or a digest if it is long. */
function short(content: string | Buffer, mode: bigint): string {
  const text =
    content.length > smallBytes ? createHash('sha1').update(content).digest('hex') : String(content);
  return (mode & 0o100n) === 0n ? text : `x ${text}`;
}

/** Entries of the git folder that no effect depends on: objects, logs and temporary notes of git. */
const unshared: ReadonlySet<string> = new Set(['objects', 'logs', 'hooks', 'ORIG_HEAD', 'COMMIT_EDITMSG']);

const isLockFile = (name: string): boolean => name === 'mutex' || name === 'next';

function* filesBelow(folder: string, apart: readonly string[]): Generator<string> {
  for (const entry of entriesIn(folder)) {
    const path = join(folder, entry.name);
    const isUnshared = unshared.has(entry.name) && path.includes('/.git/');
    // Reading the file of a lock would release the lock.
    if (path.includes('/locks/') && isLockFile(entry.name)) continue;
    if (isUnshared || apart.includes(path)) continue;
    if (entry.isDirectory()) yield* filesBelow(path, apart);
    else yield path;
  }
}

function entriesIn(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

type ModelFacts = (readonly [string, SharedFact])[];

const fact = (name: string, keys: readonly string[], value: unknown): readonly [string, SharedFact] => [
  name,
  { keys, value: JSON.stringify(value) ?? '' },
];

/** Reads the state of a model repository, with the keys that stand for it. Agent slots are not part of the model. */
export function modelFacts(model: Model, root: string): ModelFacts {
  const facts: ModelFacts = [];
  for (const [ref, commit] of model.refs) {
    if (isKeptApart(ref)) continue;
    const branch = ref.startsWith(heads) ? ref.slice(heads.length) : ref;
    const workspaces = model.checkoutsOf(branch).filter(({ path }) => path !== root);
    facts.push(fact(ref, [`ref:${branch}`, ...workspaces.map(({ path }) => `wt:${path}`)], commit));
  }
  for (const [path, worktree] of model.worktrees) {
    const { head, files, staged, isSetUp, mark, label } = worktree;
    if (path === root) {
      facts.push(fact('HEAD', ['ref:HEAD'], [head, model.headOf(worktree)]));
      facts.push(fact('the files of the project', ['ref:HEAD', `wt:${root}`], [files, staged]));
      continue;
    }
    facts.push(fact(`the worktree ${path}`, ['gitworktrees'], label));
    facts.push(fact(`the contents of ${path}`, [`wt:${path}`], [head, files, staged, isSetUp, mark]));
  }
  for (const [branch, { landed, ...made }] of model.records) {
    facts.push(fact(`the record of ${branch}`, [`ref:${branch}`], made));
    if (landed) facts.push(fact(`the note that ${branch} has landed`, [`landed:${branch}`], landed));
  }
  for (const [key, range] of model.ports) facts.push(fact(`the ports of ${key}`, ['ports'], range));
  for (const [branch, commit] of model.pushed)
    facts.push(fact(`${branch} on the remote`, [`remote:`], commit));
  facts.push(fact('the landing lock', ['lock:land'], model.landing));
  return facts;
}

const heads = branchRef('');

/** Reads the state of a store, with the keys that stand for it. Reads only new events of a history. */
export class StoreFacts {
  readonly #store: EventStore;
  readonly #lengths = new Map<string, number>();

  constructor(store: EventStore) {
    this.#store = store;
  }

  async facts(): Promise<ModelFacts> {
    const { claims, workers } = this.#store;
    const facts: ModelFacts = [];
    for (const { runId, owner, ...rest } of await this.#store.list()) {
      facts.push(fact(`the lease of run ${runId}`, [`lease:${runId}`], owner));
      facts.push(fact(`the status of run ${runId}`, [`status:${runId}`], rest));
      facts.push(fact(`the history of run ${runId}`, [`store:${runId}`], await this.#lengthOf(runId)));
      for (const { id, ...message } of await this.#store.inbox(runId))
        facts.push(fact(`message ${id} for run ${runId}`, [`inbox:${runId}`], message));
    }
    for (const claim of await claims.list())
      facts.push(fact(`the claim of ${claim.task}`, [`claim:${claim.task}`], claim));
    for (const worker of await workers.list())
      facts.push(fact(`worker ${worker.name}`, [`worker:${worker.incarnation}`], worker));
    return facts;
  }

  async #lengthOf(runId: string): Promise<number> {
    const before = this.#lengths.get(runId) ?? 0;
    const length = before + (await this.#store.read(runId, before)).length;
    this.#lengths.set(runId, length);
    return length;
  }
}

type Row = Readonly<Record<string, unknown>>;

/** A named part of a row: its keys, and the columns that count, as `columns` or as all columns except `besides`. */
interface TableReading {
  readonly name: string;
  readonly keys: readonly string[];
  readonly columns?: readonly string[];
  readonly besides?: readonly string[];
}

const leaseColumns = ['epoch', 'incarnation', 'host', 'pid', 'process_start', 'expires_at'];

const ofRun = (row: Row): string => String(row['run_id']);

const readings: Readonly<Record<string, (row: Row) => readonly TableReading[]>> = {
  runs: row => [
    { name: `the lease of run ${ofRun(row)}`, keys: [`lease:${ofRun(row)}`], columns: leaseColumns },
    { name: `the status of run ${ofRun(row)}`, keys: [`status:${ofRun(row)}`], besides: leaseColumns },
  ],
  events: row => [
    { name: `event ${String(row['seq'])} of run ${ofRun(row)}`, keys: [`store:${ofRun(row)}`] },
  ],
  inbox: row => [
    { name: `message ${String(row['id'])} for run ${ofRun(row)}`, keys: [`inbox:${ofRun(row)}`] },
  ],
  claims: row => [{ name: `the claim of ${String(row['task'])}`, keys: [`claim:${String(row['task'])}`] }],
  workers: row => [{ name: `worker ${String(row['name'])}`, keys: [`worker:${String(row['incarnation'])}`] }],
  // Only the process that holds the lease of the run uses these rows.
  processes: () => [],
};

/** Reads the rows of a SQLite store, with the keys that stand for them. */
export class StoreRows {
  readonly #file: string;
  #database: Database | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  async facts(): Promise<readonly (readonly [string, SharedFact])[]> {
    if (!this.#database && !existsSync(this.#file)) return [];
    this.#database ??= await openDatabase({ file: this.#file, readonly: true });
    const database = this.#database;
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all() as Row[];
    return tables
      .map(({ name }) => String(name))
      .filter(table => !table.startsWith('sqlite_'))
      .flatMap(table => {
        const rows = database.prepare(`SELECT * FROM "${table}"`).all() as Row[];
        const readingsOf = readings[table] ?? unknownTable(table);
        return rows.flatMap(row => readingsOf(row).map(reading => factOf(row, reading)));
      });
  }

  close(): void {
    this.#database?.close();
    this.#database = undefined;
  }
}

const unknownTable = (table: string) => (row: Row) => [
  { name: `${table} ${JSON.stringify(Object.values(row)[0])}`, keys: [`${table}:`] },
];

function factOf(
  row: Row,
  { name, keys, columns, besides = [] }: TableReading,
): readonly [string, SharedFact] {
  const counted = columns ?? Object.keys(row).filter(column => !besides.includes(column));
  return [name, { keys, value: JSON.stringify(counted.map(column => row[column])) }];
}
