import { relative, sep } from 'node:path';
import type { WorktreeState } from '../../git/delta/index.ts';

/** The state of a folder. It is null if there is nothing to read or reading failed; `why` is then the error. */
export interface FolderReading {
  readonly state: WorktreeState | null;
  readonly why?: string | undefined;
}

/** Reads the states of folders. Never rejects. */
export interface StateSource {
  /** Reads the folder, which takes several processes. */
  at(folder: string): Promise<FolderReading>;
  /** Returns the state of a folder that contains exactly a commit. */
  ofCommit(commit: string, branch: string): Promise<FolderReading>;
  /** Returns the state of a folder before its changes were committed. */
  beforeCommit(commit: string, branch: string): Promise<FolderReading>;
}

/** An activity that is notified of the folder's state after it. */
export interface Activity {
  /** `before` is set if the state at the start differs from the one reported then. */
  after(look: FolderReading, before?: WorktreeState): void;
}

interface TrackedFolder {
  /** Known content of the folder. */
  known?: Promise<FolderReading> | undefined;
  /** Last activity in the folder, if the state after it has not been read yet. */
  last?: Activity | undefined;
  /** Commit at HEAD before the last activity. */
  headBefore?: string | null | undefined;
}

export interface FolderStatesOptions {
  readonly source: StateSource;
  readonly projectRoot: string;
  /** Whether the project folder is recorded too. */
  readonly snapshotProject: boolean;
}

/**
 * Tracks the state of folders before and after each activity with as few reads as possible: the state after one
 * activity is the state before the next, and a workspace that was just created, reset or committed contains exactly
 * its commit.
 */
export class FolderStates {
  readonly #options: FolderStatesOptions;
  readonly #workspaces = new Map<string, TrackedFolder>();
  readonly #project: ProjectStates;
  readonly #pending = new Set<Promise<void>>();

  constructor(options: FolderStatesOptions) {
    this.#options = options;
    this.#project = new ProjectStates(options);
  }

  /** Notes an existing workspace with unknown content. */
  found(path: string): void {
    // Another process may have changed it since the last activity.
    this.#workspaces.set(path, { last: this.#workspaces.get(path)?.last });
  }

  /** Notes that a workspace was created at a commit or reset to it. The result of its last activity is lost. */
  cleared(path: string, commit: string, branch: string): void {
    this.#workspaces.get(path)?.last?.after(nothing);
    this.#workspaces.set(path, { known: this.#options.source.ofCommit(commit, branch) });
  }

  /** Notes that everything in the workspace was committed. */
  committed(path: string, commit: string, branch: string): void {
    const { source } = this.#options;
    const known = source.ofCommit(commit, branch);
    const { last, headBefore } = this.#workspaces.get(path) ?? {};
    this.#workspaces.set(path, { known });
    if (!last) return;
    // If HEAD has not moved, there was nothing to commit, although an earlier run may have made that commit.
    const after = commit === headBefore ? known : source.beforeCommit(commit, branch);
    this.#keep(after.then(look => last.after(look)));
  }

  /** Returns the current state. In a workspace, no other activity may begin before this one has ended. */
  async begin(folder: string, activity: Activity): Promise<FolderReading> {
    const path = this.#workspaceOf(folder);
    if (path === undefined) return this.#project.owns(folder) ? this.#project.begin() : nothing;
    const look = await this.#now(path);
    this.#workspaces.set(path, { last: activity, headBefore: look.state?.head.commit });
    return look;
  }

  /** Notes that the workspace no longer contains what the last activity left. */
  changed(path: string): void {
    if (this.#workspaces.has(path)) this.#workspaces.set(path, {});
  }

  /** Resolves when the folder may change. `isToBeSeen` forces a read now, because an untracked change follows. */
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

  /** Reads the states that are still unknown. */
  async close(): Promise<void> {
    for (const [path, { last }] of this.#workspaces) if (last) await this.#now(path);
    await Promise.all(this.#pending);
  }

  async #now(path: string): Promise<FolderReading> {
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

const nothing: FolderReading = { state: null };

/**
 * The state of the project folder, where activities may overlap and landings happen in between. All changes since the
 * last end are attributed to the activity that ends next, so that repeating them in the order of their ends gives the
 * same result.
 */
class ProjectStates {
  readonly #options: FolderStatesOptions;
  #running = 0;
  #last: FolderReading = nothing;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(options: FolderStatesOptions) {
    this.#options = options;
  }

  /** Whether the folder is part of the project, except for Reprise's own files in it. */
  owns(folder: string): boolean {
    const { projectRoot, snapshotProject } = this.#options;
    const path = relative(projectRoot, folder).split(sep);
    return snapshotProject && path[0] !== '..' && !path.includes('.reprise');
  }

  begin(): Promise<FolderReading> {
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

  #look(): Promise<FolderReading> {
    return this.#options.source.at(this.#options.projectRoot);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => {});
    return done;
  }
}
