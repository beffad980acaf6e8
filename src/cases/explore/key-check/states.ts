import { createHash } from 'node:crypto';
import { type Dirent, existsSync, lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join, relative } from 'node:path';
import { createGit, parseIndex, parseRecord, readHead, readIfThere, tipInFiles } from '../../../git/index.ts';
import { branchRef, type Model } from '../../../git/model/index.ts';
import { worktreeEntries } from '../../../git/workspace/index.ts';
import type { EventStore } from '../../../store/index.ts';
import { type Database, openDatabase } from '../../../store/sqlite/index.ts';
import { isKeptApart, type SharedFact } from './check.ts';

type Facts = readonly (readonly [string, SharedFact])[];

interface WorkspaceFolder {
  readonly path: string;
  /** Private git folder of the worktree. */
  readonly gitDir: string;
  /** Branch that is checked out. */
  readonly branch: string | undefined;
}

/** Reads the state of a repository and its workspaces, except objects, with the keys that stand for it. Runs no git. */
export class GitState {
  readonly #root: string;
  readonly #commonDir: string;
  /** Contents of files, cached until inode, size, times or mode change. */
  readonly #known = new Map<string, { readonly stamp: string; readonly value: string }>();

  constructor(root: string) {
    this.#root = root;
    this.#commonDir = join(root, '.git');
  }

  facts(): Facts {
    const workspaces = this.#workspaces();
    const facts: (readonly [string, SharedFact])[] = [this.#head(), ...this.#packedRefs(workspaces)];
    for (const { path, gitDir } of workspaces)
      facts.push([`the worktree ${this.#shown(path)}`, { keys: ['gitworktrees'], value: gitDir }]);
    const paths = workspaces.map(({ path }) => path);
    for (const path of [...paths, this.#root])
      for (const file of filesBelow(path, paths)) facts.push(...this.#readingOf(file, workspaces));
    return facts;
  }

  #workspaces(): readonly WorkspaceFolder[] {
    const repository = { root: this.#root, commonDir: this.#commonDir, git: createGit({ cwd: this.#root }) };
    return worktreeEntries(repository).map(({ path, gitDir }) => {
      const head = existsSync(gitDir) ? readHead(gitDir) : undefined;
      return { path, gitDir, branch: head?.kind === 'branch' ? head.branch : undefined };
    });
  }

  /** Branch that is checked out in the project, with its commit. */
  #head(): readonly [string, SharedFact] {
    const head = readHead(this.#commonDir);
    const tip = head?.kind === 'branch' ? tipInFiles(this.#commonDir, head.branch) : undefined;
    return ['HEAD', { keys: ['ref:HEAD'], value: JSON.stringify([head, tip]) }];
  }

  /** Refs in `packed-refs`. A loose ref is read later and replaces its packed value. */
  #packedRefs(workspaces: readonly WorkspaceFolder[]): Facts {
    const lines = readIfThere(join(this.#commonDir, 'packed-refs'))?.split('\n') ?? [];
    return lines.flatMap(line => {
      const [, id, ref] = /^([0-9a-f]+) (refs\/(?!reprise\/parked\/).*)$/.exec(line) ?? [];
      return id !== undefined && ref !== undefined
        ? [[ref, { keys: refKeys(ref, workspaces), value: id }] as const]
        : [];
    });
  }

  #readingOf(file: string, workspaces: readonly WorkspaceFolder[]): Facts {
    const inGit = relative(this.#commonDir, file);
    if (!inGit.startsWith('..')) return this.#inGitFolder(inGit, file, workspaces);
    const workspace = workspaces.find(({ path }) => file.startsWith(`${path}/`));
    const name = this.#shown(file);
    return this.#factOf(file, name, workspace ? [`wt:${workspace.path}`] : this.#keysOfProject(name));
  }

  #factOf(file: string, name: string, keys: readonly string[] | undefined): Facts {
    return keys ? [[name, { keys, value: this.#contentOf(file) }]] : [];
  }

  #keysOfProject(name: string): readonly string[] | undefined {
    const [, agent] = /^\.reprise\/state\/locks\/agents\/([^/]+)\//.exec(name) ?? [];
    if (agent !== undefined) return [`slot:${agent}`];
    // `StoreRows` reads the database; logs and journals belong to a single run.
    return name.startsWith('.reprise/state/') ? undefined : this.#checkedOut;
  }

  get #checkedOut(): readonly string[] {
    return ['ref:HEAD', `wt:${this.#root}`];
  }

  #inGitFolder(name: string, file: string, workspaces: readonly WorkspaceFolder[]): Facts {
    if (isKeptApart(name)) return [];
    if (name.startsWith('refs/'))
      return [[name, { keys: refKeys(name, workspaces), value: this.#contentOf(file).trim() }]];
    if (name.startsWith('reprise/branches/')) return this.#branchRecord(file);
    const own = workspaces.find(({ gitDir }) => file.startsWith(`${gitDir}/`));
    return this.#factOf(file, `.git/${name}`, own ? [`wt:${own.path}`] : this.#keysInGitFolder(name));
  }

  #keysInGitFolder(name: string): readonly string[] | undefined {
    if (name.startsWith('reprise/locks/land/')) return ['lock:land'];
    // This lock is held only within one effect.
    if (name.startsWith('reprise/locks/worktrees/')) return undefined;
    if (name.startsWith('worktrees/')) return ['gitworktrees'];
    return name === 'HEAD' || name === 'packed-refs' ? undefined : this.#checkedOut;
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

  #contentOf(file: string): string {
    const stat = lstatSync(file, { bigint: true, throwIfNoEntry: false });
    if (!stat) return 'missing';
    const stamp = `${stat.ino} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs} ${stat.mode}`;
    const known = this.#known.get(file);
    if (known?.stamp === stamp) return known.value;
    const value = stat.isSymbolicLink() ? readlinkSync(file) : contentIn(file, stat.mode);
    this.#known.set(file, { stamp, value });
    return value;
  }

  #shown(path: string): string {
    return relative(this.#root, path);
  }
}

/** Keys of a ref. The key of a workspace also covers the branch that is checked out there. */
function refKeys(ref: string, workspaces: readonly WorkspaceFolder[]): readonly string[] {
  const [, branch] = /^refs\/heads\/(.+)$/.exec(ref) ?? [];
  const [, remote] = /^refs\/remotes\/(.+)$/.exec(ref) ?? [];
  if (branch === undefined) return [remote === undefined ? `ref:${ref}` : `remote:${remote}`];
  const inside = workspaces.filter(workspace => workspace.branch === branch);
  return [`ref:${branch}`, ...inside.map(({ path }) => `wt:${path}`)];
}

const oidBytes = 20;
const smallBytes = 200;

/** Content of a file with its executable bit. For a git index, only paths, modes and ids, without cached file stats. */
function contentIn(file: string, mode: bigint): string {
  const bytes = readFileSync(file);
  const index = file.endsWith('/index') ? parseIndex(bytes, oidBytes) : undefined;
  const content = index
    ? JSON.stringify(
        index.entries.map(({ path, at, flagsAt }) => [
          path,
          bytes.toString('hex', at + 24, at + 28),
          bytes.toString('hex', at + 40, flagsAt),
        ]),
      )
    : bytes;
  const text =
    content.length > smallBytes ? createHash('sha1').update(content).digest('hex') : String(content);
  return (mode & 0o100n) === 0n ? text : `x ${text}`;
}

/** Entries of the git folder that no effect depends on: objects, logs and temporary notes of git. */
const unshared: ReadonlySet<string> = new Set(['objects', 'logs', 'hooks', 'ORIG_HEAD', 'COMMIT_EDITMSG']);

function* filesBelow(folder: string, apart: readonly string[]): Generator<string> {
  for (const entry of entriesIn(folder)) {
    const path = join(folder, entry.name);
    const isUnshared = unshared.has(entry.name) && path.includes('/.git/');
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
