import { type Dirent, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toTimestamp } from '../../core/index.ts';
import {
  allTracers,
  type ChoosyTracer,
  fileLimits,
  readBoundedText,
  type TracedRequest,
  type Tracer,
} from '../../effects/index.ts';
import { hideIn, type Journal, openJournal } from '../../effects/recording/index.ts';
import {
  createRedactor,
  marksOf,
  type NamedPath,
  type Redactor,
  type SecretMarks,
  secretsOf,
  secretsOfInput,
} from '../../effects/redact/index.ts';
import { createSessionRecorder } from '../../engine/recording/index.ts';
import { unitOf } from '../../engine/state/index.ts';
import type { Repository } from '../../git/index.ts';
import { removeLeftovers } from '../../process/index.ts';
import type { CommandIo, ExitCode, Host } from '../host.ts';
import { liveHost } from '../open-engine.ts';
import type { Project } from '../project.ts';
import type { JournalCommand } from './command-line.ts';
import { journalsFolder, noteSize, removeOldJournals } from './retention.ts';

/** An open journal of a run, from which `reprise capture` can make a test. */
export interface RunJournal {
  /** Host on the real world that records into the journal. */
  readonly host: Host;
  /** Records the exit code and closes the journal. A journal without an exit code belongs to a process that died. */
  close(exit: ExitCode): Promise<void>;
}

/** An open journal for a caller that already has a world. */
export interface NoteTaker extends Pick<Host, 'openSession' | 'runShell'> {
  readonly folder: string;
  readonly tracer: Tracer;
  close(exit: ExitCode): Promise<void>;
}

export interface RunJournalOptions {
  readonly io: Pick<CommandIo, 'env' | 'err' | 'now'>;
  readonly project: Project;
  /** Command that repeats the run. */
  readonly command: JournalCommand;
  /** Path of the workflow file, relative to the project's root. */
  readonly source?: string | undefined;
  /** Index of the worker. Distinguishes journals that one process opens in the same millisecond. */
  readonly place?: number | undefined;
}

/** Folder in which a capture is prepared. */
export const stagingFolder = (stateDir: string): string => join(stateDir, 'staging');

export const entriesFile = (folder: string): string => join(folder, 'entries.jsonl');
export const filesFile = (folder: string): string => join(folder, 'files.json');

/**
 * Opens the journal of a run that this process starts or resumes. A failure to write it is reported once and never
 * affects the run.
 */
export function openRunJournal(options: RunJournalOptions): RunJournal | undefined {
  const journal = openNoteTaker(options);
  if (!journal) return undefined;
  const { tracer, openSession, runShell, close } = journal;
  return { host: { ...liveHost(tracer), openSession, runShell }, close };
}

/** Like `openRunJournal`, but without a host. */
export function openNoteTaker({
  io,
  project,
  command,
  source,
  place,
}: RunJournalOptions): NoteTaker | undefined {
  const { root, stateDir } = project;
  const notice = (message: string) => io.err(`${message}\n`);
  const startedAt = toTimestamp(io.now());
  const name = [startedAt.replace(/[:.]/g, '-'), process.pid, ...(place === undefined ? [] : [place])].join(
    '-',
  );
  const folder = join(journalsFolder(stateDir), name);
  try {
    removeOldJournals(stateDir);
    removeLeftovers(stagingFolder(stateDir));
    removeLeftovers();
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    notice(`cannot keep a journal of this run: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
  const redactor = projectRedactor(project, io);
  const journal = openJournal({
    file: entriesFile(folder),
    redactor,
    header: {
      started_at: startedAt,
      command: command.command,
      args: command.args.map(arg => redactor.text(arg)),
    },
    onNotice: notice,
  });
  const keepMarks = () =>
    writeFileSync(join(folder, marksFile), JSON.stringify(marksOf(redactor.secrets)), { mode: 0o600 });
  redactor.onLearned(() => {
    try {
      keepMarks();
      for (const file of writtenIn(folder)) hideIn(file, redactor);
    } catch {
      // A capture searches for the secrets of its own environment too.
    }
  });
  const keepFiles = () => {
    keepMarks();
    const files = definitionFiles(root, source === undefined ? [] : [source]);
    writeFileSync(filesFile(folder), JSON.stringify(redactor.json(files)), { mode: 0o600 });
  };
  const plain = liveHost();
  const recorder = createSessionRecorder({
    folder,
    redactor,
    repository: openOnce(root, io),
    projectRoot: root,
    task: ({ step, worker }) => unitOf(step, worker),
    snapshotProject: false,
    openSession: plain.openSession,
    runShell: plain.runShell,
    onProblem: notice,
  });
  const tracers = [
    inputLearner(redactor),
    journal.tracer,
    recorder.tracer,
    runNamer(folder, keepFiles),
    beforeCommits(journal),
  ];
  return {
    folder,
    tracer: allTracers(tracers),
    openSession: recorder.openSession,
    runShell: recorder.runShell,
    close: async exit => {
      await recorder.close();
      journal.note({ exit });
      journal.close();
      noteSize(folder);
    },
  };
}

const marksFile = 'secrets.json';

/** Files of a journal besides its entries. */
function writtenIn(folder: string): readonly string[] {
  const sessions = join(folder, 'sessions');
  const recorded = existsSync(sessions) ? readdirSync(sessions).map(name => join(sessions, name)) : [];
  return [filesFile(folder), ...recorded].filter(file => existsSync(file));
}

/** Returns the marks of the secrets that the run knew. None for a journal of an older version. */
export function marksOfJournal(folder: string): SecretMarks | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, marksFile), 'utf8')) as SecretMarks;
  } catch {
    return undefined;
  }
}

/** Learns the secrets in the input of a run, when it starts and when it is resumed. */
const inputLearner = (redactor: Redactor): ChoosyTracer => {
  const learn = (events: readonly { readonly type: string; readonly data: unknown }[]) => {
    const [started] = events;
    if (started?.type === 'run.started')
      redactor.learn(secretsOfInput((started.data as { readonly input: unknown }).input));
  };
  return {
    of: new Set(['store.create', 'store.read']),
    granted: ({ effect, args }) => {
      if (effect.name === 'store.create')
        learn((args as { readonly events: Parameters<typeof learn>[0] }).events);
    },
    settled: ({ effect }, _place, outcome) => {
      if (effect.name === 'store.read' && outcome.kind === 'ok')
        learn(outcome.value as Parameters<typeof learn>[0]);
    },
  };
};

/** Returns a redactor that hides secrets and the folders of the project. */
export const projectRedactor = (project: Project, { env }: Pick<CommandIo, 'env'>): Redactor =>
  createRedactor({ paths: projectPaths(project, env), secrets: secretsOf(env) });

function projectPaths({ root, stateDir }: Project, env: CommandIo['env']): readonly NamedPath[] {
  return [
    { name: 'repo', path: root },
    { name: 'state', path: stateDir },
    ...(env['HOME'] ? [{ name: 'home', path: env['HOME'] }] : []),
  ];
}

/** Writes the run id into the journal as soon as it is known. Before that, nothing is worth capturing. */
function runNamer(folder: string, keepFiles: () => void): ChoosyTracer {
  let isNamed = false;
  const name = ({ args }: TracedRequest) => {
    if (isNamed) return;
    isNamed = true;
    try {
      keepFiles();
      writeFileSync(join(folder, 'run'), (args as { readonly runId: string }).runId);
    } catch {
      // `reprise capture` reports that this run cannot be captured.
    }
  };
  return {
    of: new Set(['store.create', 'store.acquire']),
    granted: request => {
      if (request.effect.name === 'store.create') name(request);
    },
    settled: (request, _place, outcome) => {
      if (request.effect.name !== 'store.acquire' || outcome.kind !== 'ok') return;
      if ((outcome.value as { readonly kind: string }).kind === 'acquired') name(request);
    },
  };
}

/**
 * Flushes the journal before a commit to the store. Otherwise, if the process is killed during the commit, the store
 * could contain a commit that the journal does not mention. Commits within milliseconds of each other share a flush.
 * Before a release, the flush is unconditional: the next owner of the run must find everything that came before.
 */
const beforeCommits = (journal: Journal): ChoosyTracer => ({
  of: new Set(['store.append', 'store.create', 'store.release']),
  granted: ({ effect }) => {
    if (effect.name === 'store.release') journal.flush();
    else journal.flushUnlessMany();
  },
});

function openOnce(cwd: string, { env }: Pick<CommandIo, 'env'>): () => Promise<Repository | undefined> {
  let opened: Promise<Repository | undefined> | undefined;
  const open = async () => {
    const { openRepository } = await import('../../git/repository.ts');
    return openRepository({ cwd, inheritEnv: env });
  };
  return () => {
    opened ??= open().catch(() => undefined);
    return opened;
  };
}

/** Returns the run id of a journal, or `undefined` if the process ended before it had a run. */
export function runOfJournal(folder: string): string | undefined {
  try {
    return readFileSync(join(folder, 'run'), 'utf8').trim();
  } catch {
    return undefined;
  }
}

/** Contents of files by path, relative to the project's root. */
export type DefinitionFiles = Readonly<Record<string, string>>;

/** Reads the settings, workflows and agents of a project, which may change or be uncommitted when a test is made. */
export function definitionFiles(root: string, sources: readonly string[] = []): DefinitionFiles {
  const files: Record<string, string> = {};
  const keep = (path: string) => {
    try {
      files[path] = readBoundedText(join(root, path), { maxBytes: fileLimits.definition });
    } catch {
      // The file does not exist or cannot be read, or a workflow in it would be refused.
    }
  };
  keep('reprise.yaml');
  for (const folder of ['.reprise/workflows', '.reprise/agents'])
    for (const path of filesBelow(root, folder)) keep(path);
  for (const source of sources.filter(isOfProject)) {
    keep(source);
    // The source may be `module.ts#export`.
    keep(source.replace(/#[^#/]*$/, ''));
  }
  return files;
}

/** Excludes files outside of the project, and generated ones in the state folder, which the command creates again. */
const isOfProject = (path: string): boolean => !/^(\.\.\/|\/|\.reprise\/state\/)/.test(path);

const filesBelow = (root: string, folder: string): readonly string[] =>
  entriesOf(join(root, folder)).flatMap(entry => {
    const path = `${folder}/${entry.name}`;
    return entry.isDirectory() ? filesBelow(root, path) : path;
  });

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}
