import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import { type CommandIo, displayPath, findUpwards } from '../../project/index.ts';
import { safeLine } from '../../view/index.ts';
import type { Config } from '../../workflow/yaml/index.ts';
import type { FileOutcome } from './report.ts';
import { configInitFile, type InitAgent, type InitFile, otherInitFiles } from './templates.ts';

export interface InitOptions {
  /** Program that runs the agents. Defaults to `claude`. */
  readonly agent?: InitAgent | undefined;
  /** Whether to answer every question with yes. */
  readonly yes?: boolean | undefined;
  /** Whether to only report what would be done. */
  readonly dryRun?: boolean | undefined;
  /** Whether to print JSON and ask no questions. */
  readonly json?: boolean | undefined;
}

export interface FileDecision extends FileOutcome {
  readonly file: InitFile;
}

export interface InitPlan {
  readonly decisions: readonly FileDecision[];
  readonly notes: readonly string[];
}

/** Decides what to do with each file, and asks about those that differ. Writes nothing. */
export async function decideAll(
  root: string,
  io: CommandIo,
  { agent = 'claude', ...options }: InitOptions,
): Promise<InitPlan | 'interrupted'> {
  const answers = !options.json && !options.dryRun && canPrompt(io) ? answersFrom(io) : undefined;
  const decide = (file: InitFile) => decision(file, { root, io, options, answers });
  const config = await decide(configInitFile);
  if (config === 'interrupted') return config;
  const { settings, notes } = await settingsAfter(config, root);
  const { defaultTaskSource } = await import('../../workflow/yaml/config-workers.ts');
  const tasks = settings.tasks ?? defaultTaskSource;
  const decisions = [config];
  for (const file of otherInitFiles(agent, tasks.kind === 'folder' ? tasks.folder : undefined)) {
    const isDefined = file.agent !== undefined && Object.hasOwn(settings.agents ?? {}, file.agent);
    const decided = isDefined
      ? skipped(file, `reprise.yaml defines the agent ${file.agent}`)
      : await decide(file);
    if (decided === 'interrupted') return decided;
    decisions.push(decided);
  }
  return { decisions, notes: [...notes, ...nearerProject(root, io)] };
}

const skipped = (file: InitFile, why: string): FileDecision => ({
  file,
  path: file.path,
  outcome: 'skipped',
  why,
});

interface InitContext {
  readonly root: string;
  readonly io: CommandIo;
  readonly options: InitOptions;
  /** Absent if no answer can be read. */
  readonly answers: Confirmation | undefined;
}

async function decision(
  file: InitFile,
  { root, io, options, answers }: InitContext,
): Promise<FileDecision | 'interrupted'> {
  const found = survey(file, root);
  const decided = (outcome: FileOutcome['outcome'], why?: string) => ({
    file,
    path: file.path,
    outcome,
    why,
  });
  switch (found.kind) {
    case 'missing':
      return decided('made');
    case 'not-needed':
      return skipped(file, 'its folder already has other files');
    case 'same':
      return decided('same');
    case 'blocked':
      throw new RepriseError(
        'INIT_FAILED',
        `${file.path} cannot be created: ${found.why}. Nothing was changed`,
        {
          hint: 'move or fix it, then run again: reprise init',
        },
      );
    case 'different': {
      if (file.isExample) return decided('kept', 'you have changed the example');
      if (options.yes) return decided('overwritten');
      if (options.dryRun) return decided('differs');
      const kept = decided('kept', 'it differs; to overwrite all files that differ: reprise init --yes');
      if (!answers) return kept;
      const shown = displayPath(io, join(root, file.path));
      const answer = await answers.confirm(`overwrite ${safeLine(shown)}?`);
      if (answer === undefined) return 'interrupted';
      return answer ? decided('overwritten') : decided('kept', 'it differs');
    }
  }
}

/** Settings after the command: those of the existing file if it is kept, or else those of the new one. */
async function settingsAfter(
  { file, outcome }: FileDecision,
  root: string,
): Promise<{ readonly settings: Config; readonly notes: readonly string[] }> {
  const isKept = outcome === 'kept' || outcome === 'differs';
  const text = isKept ? readFileSync(join(root, file.path), 'utf8') : file.text;
  const { loadConfig } = await import('../../workflow/yaml/config.ts');
  try {
    return { settings: loadConfig({ file: file.path, text }), notes: [] };
  } catch (error) {
    if (!(error instanceof RepriseError)) throw error;
    return { settings: {}, notes: [`${file.path} has problems; see them: reprise validate ${file.path}`] };
  }
}

/** Notes that commands in the current folder use a project nested below the root. */
function nearerProject(root: string, { cwd }: CommandIo): readonly string[] {
  const nearer = findUpwards(
    cwd,
    folder => folder === root || ['.reprise', 'reprise.yaml'].some(mark => existsSync(join(folder, mark))),
  );
  if (nearer === undefined || nearer === root) return [];
  return [`commands in ${relative(root, nearer)} use the project in that folder, not this one`];
}

/** Yes-or-no answers from standard input, one per line. */
interface Confirmation {
  /** Asks a question. The end of the input means no; `undefined` means that the command was interrupted. */
  confirm(question: string): Promise<boolean | undefined>;
}

/** Whether questions can be answered: by a user at the keyboard, or from a pipe. */
const canPrompt = ({ ask, isTTY }: CommandIo): boolean => ask !== undefined || !isTTY.stdin;

function answersFrom({ stdin, err, isTTY, interrupt }: CommandIo): Confirmation {
  const lines = linesOf(stdin);
  return {
    async confirm(question) {
      err(`${question} [y/N] `);
      const line = await untilAborted(lines.next(), interrupt);
      if (line === undefined) {
        err('\n');
        return undefined;
      }
      const answer = line.done ? '' : line.value.trim();
      // A terminal has echoed the answer already.
      if (!isTTY.stdin || line.done) err(`${answer}\n`);
      return /^y(es)?$/i.test(answer);
    },
  };
}

async function* linesOf(stdin: CommandIo['stdin']): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of stdin) {
    rest += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') yield rest;
  return undefined;
}

function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const stop = () => resolve(undefined);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

/** What exists at the path of a file. */
type FileSurvey =
  | { readonly kind: 'missing' }
  /** The file is an example, and its folder already has other files. */
  | { readonly kind: 'not-needed' }
  | { readonly kind: 'same' }
  | { readonly kind: 'different' }
  /** The file can be neither created nor read. */
  | { readonly kind: 'blocked'; readonly why: string };

/** Checks what exists at the path of a file. Changes nothing. */
function survey({ path, text, isExample = false }: InitFile, root: string): FileSurvey {
  const blocked = blockedOnTheWay(path, root);
  if (blocked !== undefined) return { kind: 'blocked', why: blocked };
  const file = join(root, path);
  if (!isThere(file)) return { kind: isExample && hasOthers(file) ? 'not-needed' : 'missing' };
  try {
    if (!statSync(file).isFile()) return { kind: 'blocked', why: `${path} is not a file` };
    return { kind: readFileSync(file, 'utf8') === text ? 'same' : 'different' };
  } catch (error) {
    return { kind: 'blocked', why: `${path} cannot be read: ${codeOf(error)}` };
  }
}

/** Reason why the folders of the path cannot be created or written to; `undefined` if they can. */
function blockedOnTheWay(path: string, root: string): string | undefined {
  const folders = path.split('/').slice(0, -1);
  let deepest = root;
  for (const [depth] of folders.entries()) {
    const folder = join(root, ...folders.slice(0, depth + 1));
    if (!isThere(folder)) break;
    const shown = relative(root, folder);
    try {
      if (!statSync(folder).isDirectory()) return `${shown} is not a folder`;
      if (isOutside(realpathSync(folder), realpathSync(root)))
        return `${shown} is a link to a folder outside the repository`;
    } catch (error) {
      return `${shown} is a broken link: ${codeOf(error)}`;
    }
    deepest = folder;
  }
  try {
    accessSync(deepest, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return `${relative(root, deepest) || 'the root of the repository'} is not writable: ${codeOf(error)}`;
  }
}

const isOutside = (folder: string, root: string): boolean => /^\.\.(\/|$)/.test(relative(root, folder));

/** Whether anything exists at the path, a broken link included. */
const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

function hasOthers(file: string): boolean {
  if (!isThere(dirname(file))) return false;
  return readdirSync(dirname(file)).some(name => !name.startsWith('.') && name !== basename(file));
}

/** Error code such as `EACCES`, or else the error as text. */
export const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : String(error);
