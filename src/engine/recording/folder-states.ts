import { relative, sep } from 'node:path';
import type { WorktreeState } from '../../git/delta/state.ts';

/** What was seen of a folder: nothing where there is nothing to see, or where it could not be done, and then why. */
export interface Look {
  readonly state: WorktreeState | null;
  readonly why?: string | undefined;
}

/** Where states come from. Never rejects. */
export interface StateSource {
  /** Looks at the folder, which takes some processes. */
  at(folder: string): Promise<Look>;
  /** Of a folder in which nothing but a commit is. */
  ofCommit(commit: string, branch: string): Promise<Look>;
  /** Of a folder before all that was left in it was committed. */
  beforeCommit(commit: string, branch: string): Promise<Look>;
}

/** Who waits to be told how the folder stood after it. */
export interface Activity {
  /** `before` if it was another one than it was told when it began. */
  after(look: Look, before?: WorktreeState): void;
}

interface Workspace {
  /** What it is known to hold. */
  known?: Promise<Look> | undefined;
  /** The last that was done in it, of which nobody has seen what it left. */
  last?: Activity | undefined;
}

export interface FolderStatesOptions {
  readonly source: StateSource;
  readonly projectRoot: string;
  /** Whether the project's own folder is looked at too. */
  readonly snapshotProject: boolean;
}

/**
 * How folders stood before and after each activity, looked at as rarely as possible: what one activity left is what the
 * next one finds, and a workspace that was just made, reset or committed holds its commit and nothing else.
 */
export class FolderStates {
  readonly #options: FolderStatesOptions;
  readonly #workspaces = new Map<string, Workspace>();
  readonly #project: ProjectStates;
  readonly #pending = new Set<Promise<void>>();

  constructor(options: FolderStatesOptions) {
    this.#options = options;
    this.#project = new ProjectStates(options);
  }

  /** A workspace is there, with whatever is in it. */
  found(path: string): void {
    // Somebody else may have worked in it since.
    this.#workspaces.set(path, { last: this.#workspaces.get(path)?.last });
  }

  /** A workspace was made at a commit, or brought back to it. What was done in it before is not to be seen any more. */
  cleared(path: string, commit: string, branch: string): void {
    this.#workspaces.get(path)?.last?.after(nothing);
    this.#workspaces.set(path, { known: this.#options.source.ofCommit(commit, branch) });
  }

  /** All that was in it was committed. */
  committed(path: string, commit: string, branch: string): void {
    const known = this.#options.source.ofCommit(commit, branch);
    const last = this.#workspaces.get(path)?.last;
    this.#workspaces.set(path, { known });
    if (last) this.#keep(this.#options.source.beforeCommit(commit, branch).then(look => last.after(look)));
  }

  /** Gives how the folder stands now. Nothing else may begin in a workspace until it has ended. */
  async begin(folder: string, activity: Activity): Promise<Look> {
    const path = this.#workspaceOf(folder);
    if (path === undefined) return this.#project.owns(folder) ? this.#project.begin() : nothing;
    const look = await this.#now(path);
    this.#workspaces.set(path, { last: activity });
    return look;
  }

  /** It holds something else now than what the last activity left. */
  changed(path: string): void {
    if (this.#workspaces.has(path)) this.#workspaces.set(path, {});
  }

  /** Resolves when others may change the folder. `isToBeSeen`: somebody will who says nothing of it. */
  async ended(
    folder: string,
    activity: Activity,
    { isToBeSeen }: { readonly isToBeSeen: boolean },
  ): Promise<void> {
    const path = this.#workspaceOf(folder);
    if (path !== undefined) {
      if (isToBeSeen) await this.#now(path);
      return;
    }
    if (this.#project.owns(folder)) await this.#project.ended(activity);
    else activity.after(nothing);
  }

  /** Looks at what nobody has looked at yet. */
  async close(): Promise<void> {
    for (const [path, { last }] of this.#workspaces) if (last) await this.#now(path);
    await Promise.all(this.#pending);
  }

  async #now(path: string): Promise<Look> {
    const { known, last } = this.#workspaces.get(path) ?? {};
    const look = await (known ?? this.#options.source.at(path));
    last?.after(look);
    this.#workspaces.set(path, { known: Promise.resolve(look) });
    return look;
  }

  #keep(work: Promise<void>): void {
    const kept = work.finally(() => this.#pending.delete(kept));
    this.#pending.add(kept);
  }

  #workspaceOf(folder: string): string | undefined {
    for (let path = folder; ; path = path.slice(0, path.lastIndexOf(sep))) {
      if (this.#workspaces.has(path)) return path;
      if (path.lastIndexOf(sep) <= 0) return undefined;
    }
  }
}

const nothing: Look = { state: null };

/**
 * In the project's own folder several things may go on at once, and landings change it in between. What happened since
 * the last end is put down to whoever ends next, so that doing it all again in the order of the ends gives the same.
 */
class ProjectStates {
  readonly #options: FolderStatesOptions;
  #running = 0;
  #last: Look = nothing;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(options: FolderStatesOptions) {
    this.#options = options;
  }

  /** Not what Reprise keeps inside of the project for itself. */
  owns(folder: string): boolean {
    const { projectRoot, snapshotProject } = this.#options;
    const path = relative(projectRoot, folder).split(sep);
    return snapshotProject && path[0] !== '..' && !path.includes('.reprise');
  }

  begin(): Promise<Look> {
    return this.#inTurn(async () => {
      if (this.#running++ === 0) this.#last = await this.#look();
      return this.#last;
    });
  }

  ended(activity: Activity): Promise<void> {
    return this.#inTurn(async () => {
      const before = this.#last;
      this.#running--;
      this.#last = await this.#look();
      activity.after(this.#last, before.state ?? undefined);
    });
  }

  #look(): Promise<Look> {
    return this.#options.source.at(this.#options.projectRoot);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => {});
    return done;
  }
}
