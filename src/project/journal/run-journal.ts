import { type Dirent, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { toTimestamp } from '../../core/time.ts';
import { type Journal, openJournal } from '../../effects/recording/journal.ts';
import { createRedactor, type NamedPath, type Redactor } from '../../effects/redact/redact.ts';
import { secretsOf } from '../../effects/redact/secrets.ts';
import { allTracers, type ChoosyTracer, type TracedRequest, type Tracer } from '../../effects/tracer.ts';
import { createSessionRecorder } from '../../engine/recording/recorder.ts';
import { unitOf } from '../../engine/state/graph.ts';
import type { Repository } from '../../git/repository.ts';
import type { ExitCode } from '../exit-codes.ts';
import type { CommandIo, Host } from '../host.ts';
import { liveHost } from '../open-engine.ts';
import type { Project } from '../project.ts';
import type { JournalCommand } from './command-line.ts';
import { journalsFolder, noteSize, removeOldJournals } from './retention.ts';

/** A run while it is being written down, so that a test can be made of it. */
export interface RunJournal {
  /** The real world, with somebody who takes notes. */
  readonly host: Host;
  /** Says how the command ended; a journal without that is of a process that died. */
  close(exit: ExitCode): Promise<void>;
}

/** Somebody who takes notes of a run, for whoever has a world already. */
export interface NoteTaker extends Pick<Host, 'openSession' | 'runShell'> {
  readonly folder: string;
  readonly tracer: Tracer;
  close(exit: ExitCode): Promise<void>;
}

export interface RunJournalOptions {
  readonly io: CommandIo;
  readonly project: Project;
  /** What does the same again. */
  readonly command: JournalCommand;
  /** The file that defines the workflow, relative to the root of the project. */
  readonly source?: string | undefined;
  /** Tells journals apart that one process begins at the same moment. */
  readonly place?: number | undefined;
}

export const entriesFile = (folder: string): string => join(folder, 'entries.jsonl');
export const filesFile = (folder: string): string => join(folder, 'files.json');

/**
 * Opens the journal of a run that is begun or gone on with here. Whatever goes wrong with it is said once, and never
 * disturbs the run.
 */
export function openRunJournal(options: RunJournalOptions): RunJournal | undefined {
  const taker = openNoteTaker(options);
  if (!taker) return undefined;
  const { tracer, openSession, runShell, close } = taker;
  return { host: { ...liveHost(tracer), openSession, runShell }, close };
}

/** The same without a world. */
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
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    notice(`this run keeps no journal: ${error instanceof Error ? error.message : String(error)}`);
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
  const keepFiles = () => {
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
  const tracers = [journal.tracer, recorder.tracer, runNamer(folder, keepFiles), beforeCommits(journal)];
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

/** What hides secrets and the folders of a project in its journals. */
export const projectRedactor = (project: Project, { env }: Pick<CommandIo, 'env'>): Redactor =>
  createRedactor({ paths: projectPaths(project, env), secrets: secretsOf(env) });

function projectPaths({ root, stateDir }: Project, env: CommandIo['env']): readonly NamedPath[] {
  const isInside = !relative(root, stateDir).split(sep).includes('..');
  return [
    { name: 'repo', path: root },
    ...(isInside ? [] : [{ name: 'state', path: stateDir }]),
    ...(env['HOME'] ? [{ name: 'home', path: env['HOME'] }] : []),
  ];
}

/** Notes whose journal it is as soon as that is known; before that there is nothing worth keeping. */
function runNamer(folder: string, keepFiles: () => void): ChoosyTracer {
  let isNamed = false;
  const name = ({ args }: TracedRequest) => {
    if (isNamed) return;
    isNamed = true;
    try {
      keepFiles();
      writeFileSync(join(folder, 'run'), (args as { readonly runId: string }).runId);
    } catch {
      // Then it cannot be captured, which capture says.
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
 * A commit to the store takes longer than anything else, and is there even if the process is killed meanwhile. That it
 * was asked for must be known then, unless commits follow each other within milliseconds. Whoever has a run after it was
 * released must find all of what came before.
 */
const beforeCommits = (journal: Journal): ChoosyTracer => ({
  of: new Set(['store.append', 'store.create', 'store.release']),
  granted: ({ effect }) => {
    if (effect.name === 'store.release') journal.flush();
    else journal.flushUnlessMany();
  },
});

function openOnce(cwd: string, { env }: CommandIo): () => Promise<Repository | undefined> {
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

/** The run that a journal is of; `undefined` if it ended before it had one. */
export function runOfJournal(folder: string): string | undefined {
  try {
    return readFileSync(join(folder, 'run'), 'utf8').trim();
  } catch {
    return undefined;
  }
}

/** Texts by path, relative to the project's root. */
export type DefinitionFiles = Readonly<Record<string, string>>;

/** The settings, workflows and agents of a project: they may be changed, or never committed, when a test is made. */
export function definitionFiles(root: string, sources: readonly string[] = []): DefinitionFiles {
  const files: Record<string, string> = {};
  const keep = (path: string) => {
    try {
      files[path] = readFileSync(join(root, path), 'utf8');
    } catch {
      // Not there, or no text.
    }
  };
  keep('reprise.yaml');
  for (const folder of ['.reprise/workflows', '.reprise/agents'])
    for (const path of filesBelow(root, folder)) keep(path);
  for (const source of sources.filter(isOfProject)) {
    keep(source);
    // `module.ts#export`
    keep(source.replace(/#[^#/]*$/, ''));
  }
  return files;
}

/** Not those that were made from the command line, which makes them again. */
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
