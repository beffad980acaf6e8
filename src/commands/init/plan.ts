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
import { RepriseError } from '../../core/errors.ts';
import type { CommandIo } from '../../project/host.ts';
import { displayPath, findUpwards } from '../../project/project.ts';
import { safeLine } from '../../view/safe-text.ts';
import type { Config } from '../../workflow/yaml/config.ts';
import type { FileOutcome } from './report.ts';
import { configInitFile, type InitAgent, type InitFile, otherInitFiles } from './templates.ts';

export interface InitOptions {
  /** The program that plays the agents; `claude` unless given. */
  readonly agent?: InitAgent | undefined;
  /** Every question is answered with yes. */
  readonly yes?: boolean | undefined;
  /** Only say what would be done. */
  readonly dryRun?: boolean | undefined;
  /** Nobody is asked. */
  readonly json?: boolean | undefined;
}

export interface Decision extends FileOutcome {
  readonly file: InitFile;
}

export interface Plan {
  readonly decisions: readonly Decision[];
  readonly notes: readonly string[];
}

/** Finds out about each file what is to become of it. Writes nothing. */
export async function decideAll(
  root: string,
  io: CommandIo,
  { agent = 'claude', ...options }: InitOptions,
): Promise<Plan | 'interrupted'> {
  const answers = !options.json && !options.dryRun && canBeAsked(io) ? answersFrom(io) : undefined;
  const decide = (file: InitFile) => decision(file, { root, io, options, answers });
  const config = await decide(configInitFile);
  if (config === 'interrupted') return config;
  const { settings, notes } = await settingsAfter(config, root);
  const { defaultTaskSource } = await import('../../workflow/yaml/config-workers.ts');
  const tasks = settings.tasks ?? defaultTaskSource;
  const decisions = [config];
  for (const file of otherInitFiles(agent, tasks.kind === 'folder' ? tasks.folder : undefined)) {
    const isDefined = file.agent !== undefined && Object.hasOwn(settings.agents ?? {}, file.agent);
    const made = isDefined
      ? skipped(file, `reprise.yaml defines the agent ${file.agent}`)
      : await decide(file);
    if (made === 'interrupted') return made;
    decisions.push(made);
  }
  return { decisions, notes: [...notes, ...nearerProject(root, io)] };
}

const skipped = (file: InitFile, why: string): Decision => ({
  file,
  path: file.path,
  outcome: 'skipped',
  why,
});

interface Circumstances {
  readonly root: string;
  readonly io: CommandIo;
  readonly options: InitOptions;
  /** Absent if nobody can be asked. */
  readonly answers: Answers | undefined;
}

async function decision(
  file: InitFile,
  { root, io, options, answers }: Circumstances,
): Promise<Decision | 'interrupted'> {
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
      return skipped(file, 'there are others in its folder');
    case 'same':
      return decided('same');
    case 'blocked':
      throw new RepriseError(
        'INIT_FAILED',
        `${file.path} cannot be made: ${found.why}. Nothing was changed`,
        {
          hint: 'move it away or mend it, then try again: reprise init',
        },
      );
    case 'different': {
      if (file.isExample) return decided('kept', 'it is no longer the example');
      if (options.yes) return decided('overwritten');
      if (options.dryRun) return decided('differs');
      const kept = decided('kept', 'it differs; to overwrite everything that does: reprise init --yes');
      if (!answers) return kept;
      const shown = displayPath(io, join(root, file.path));
      const answer = await answers.confirm(`overwrite ${safeLine(shown)}?`);
      if (answer === undefined) return 'interrupted';
      return answer ? decided('overwritten') : decided('kept', 'it differs');
    }
  }
}

/** The settings that will hold: those in a file that stays, or else those of the one that is made. */
async function settingsAfter(
  { file, outcome }: Decision,
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

/** Commands in a folder below work with what is nearest. */
function nearerProject(root: string, { cwd }: CommandIo): readonly string[] {
  const nearer = findUpwards(
    cwd,
    folder => folder === root || ['.reprise', 'reprise.yaml'].some(mark => existsSync(join(folder, mark))),
  );
  if (nearer === undefined || nearer === root) return [];
  return [`commands in ${relative(root, nearer)} use the project there, not this one`];
}

/** Answers to questions, one a line, from a person or from whoever wrote them to standard input. */
interface Answers {
  /** Puts the question. Nothing more to read means no; `undefined` if the command was interrupted. */
  confirm(question: string): Promise<boolean | undefined>;
}

/** Whether anybody could answer: a person who is there, or an input that is not a terminal, be it empty. */
const canBeAsked = ({ ask, isTTY }: CommandIo): boolean => ask !== undefined || !isTTY.stdin;

function answersFrom({ stdin, err, isTTY, interrupt }: CommandIo): Answers {
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
      // What is typed at a terminal stands there already.
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

/** How a file that is to be made is found. */
type Found =
  | { readonly kind: 'missing' }
  /** An example that is not needed: its folder holds others. */
  | { readonly kind: 'not-needed' }
  | { readonly kind: 'same' }
  | { readonly kind: 'different' }
  /** It can be neither made nor read. */
  | { readonly kind: 'blocked'; readonly why: string };

/** Looks at the place of a file below the top of a repository, and changes nothing. */
function survey({ path, text, isExample = false }: InitFile, root: string): Found {
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

/** What stands where a folder of the path should be, or makes it impossible to write there. */
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
        return `${shown} leads to another place, outside of the repository`;
    } catch (error) {
      return `${shown} cannot be followed: ${codeOf(error)}`;
    }
    deepest = folder;
  }
  try {
    accessSync(deepest, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return `nothing can be written into ${relative(root, deepest) || 'the top of the repository'}: ${codeOf(error)}`;
  }
}

const isOutside = (folder: string, root: string): boolean => /^\.\.(\/|$)/.test(relative(root, folder));

/** Also a link that leads nowhere is in the way. */
const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

function hasOthers(file: string): boolean {
  if (!isThere(dirname(file))) return false;
  return readdirSync(dirname(file)).some(name => !name.startsWith('.') && name !== basename(file));
}

/** `EACCES`, or whatever else there is to say. */
export const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : String(error);
