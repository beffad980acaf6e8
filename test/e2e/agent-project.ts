import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type CliOptions,
  type CliResult,
  createProject,
  type Files,
  parseLines,
  type RunningCli,
  type TestProject,
} from './run-inline.ts';

interface WorkerResult {
  readonly index: number;
  readonly status: string;
  readonly output?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: string };
  readonly workspace: string;
  readonly branch: string;
}

export interface FanOut {
  readonly worker_results: readonly WorkerResult[];
  readonly total_workers: number;
  readonly success_count: number;
  readonly fail_count: number;
  readonly cancelled_count: number;
}

export interface Outcome extends CliResult {
  readonly run: string;
  readonly status: string;
  readonly output: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: string; readonly message: string; readonly hint?: string };
  readonly events: readonly Event[];
}

interface Event {
  readonly type: string;
  readonly step?: string;
  readonly worker?: number;
  readonly data?: Readonly<Record<string, unknown>>;
}

/** Repository whose agents are shell scripts. They log to the file `$MARKS`, which is in no checkout. */
export interface AgentProject extends TestProject {
  git(...args: readonly string[]): string;
  /** Fingerprint of everything in the user's checkout that a run must not change. */
  checkout(): string;
  /** Runs a command with `--json` and returns its parsed result. */
  outcome(args: readonly string[], options?: CliOptions): Promise<Outcome>;
  /** Runs a command with `$MARKS` set. */
  cli(args: readonly string[], options?: CliOptions): Promise<CliResult>;
  /** Starts a command with `$MARKS` set. */
  begin(args: readonly string[], options?: CliOptions): RunningCli;
  /** Lines that agents have written to `$MARKS` so far. */
  marks(): readonly string[];
  /** Writes the file `$MARKS.<name>`, which running agents can read. */
  tell(name: string, text: string): void;
  /** Text of the file `$MARKS.<name>`. */
  told(name: string): string;
  /** Ids of processes that a run started and that are still alive. */
  leftRunning(): readonly number[];
}

/** Creates the repository. `agents` maps names to shell scripts, which find their prompt in `$prompt`. */
export function agentProject({
  agents = {},
  files = {},
  config = '',
}: {
  readonly agents?: Files;
  readonly files?: Files;
  readonly config?: string;
}): AgentProject {
  const scripts = Object.entries(agents).map(([name, script]) => [
    `agents/${name}.sh`,
    `prompt=$(cat; echo .); prompt=\${prompt%.}\n${script}\n`,
  ]);
  const defined = Object.keys(agents).map(
    name => `  ${name}: { kind: command, command: [sh, agents/${name}.sh] }`,
  );
  const project = createProject({
    git: true,
    files: {
      'a.txt': 'one\n',
      'reprise.yaml': ['agents:', ...defined, config].join('\n'),
      ...Object.fromEntries(scripts),
      ...files,
    },
  });
  const { root } = project;
  const git = (...args: readonly string[]): string =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: 'pipe' }).trimEnd();
  git('symbolic-ref', 'HEAD', 'refs/heads/main');
  git('config', 'user.name', 'ana');
  git('config', 'user.email', 'ana@example.com');
  git('add', '--all');
  git('commit', '--quiet', '--message', 'Initial commit');
  const marksFile = join(root, '.git', 'marks');
  writeFileSync(marksFile, '');
  const withMarks = (options: CliOptions = {}): CliOptions => ({
    ...options,
    env: { MARKS: marksFile, ...options.env },
  });
  const begin = (args: readonly string[], options?: CliOptions) => project.start(args, withMarks(options));
  return {
    ...project,
    git,
    begin,
    cli: (args, options) => begin(args, options).ended,
    outcome: async (args, options) => toOutcome(await begin([...args, '--json'], options).ended),
    checkout: () => checkoutOf(root, git),
    marks: () => readFileSync(marksFile, 'utf8').split('\n').slice(0, -1),
    tell: (name, text) => writeFileSync(`${marksFile}.${name}`, text),
    told: name => readFileSync(`${marksFile}.${name}`, 'utf8'),
    leftRunning: () => processesWith(`MARKS=${marksFile}`),
  };
}

export function toOutcome(ended: CliResult): Outcome {
  const events = parseLines<Event & Omit<Outcome, 'run' | 'events'> & { runId: string }>(ended.stdout);
  const last = events.at(-1);
  if (last?.type !== 'result') throw new Error(`no result: ${ended.stdout}${ended.stderr}`);
  const { runId, status, output, error } = last;
  return { ...ended, run: runId, status, output, events, ...(error ? { error } : {}) };
}

export const fanOutOf = ({ output, events }: Outcome, step: string): FanOut => {
  const ends = events.filter(each => each.step === step && each.worker === undefined);
  return (output?.[step] ?? ends.at(-1)?.data?.['output']) as FanOut;
};

function checkoutOf(root: string, git: (...args: string[]) => string): string {
  const files = git('ls-files', '-z', '--cached', '--others', '--exclude-standard').split('\0');
  const contents = files.filter(Boolean).map(file =>
    createHash('sha256')
      .update(readFileSync(join(root, file)))
      .digest('hex'),
  );
  return [
    git('rev-parse', 'HEAD'),
    git('rev-parse', '--symbolic-full-name', 'HEAD'),
    git('status', '--porcelain'),
    git('ls-files', '--stage'),
    ...contents,
  ].join('\n');
}

/** Searches by environment variable, which also finds processes that have left their process group. */
function processesWith(variable: string): readonly number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => environmentOf(pid).includes(variable));
}

function environmentOf(pid: number): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  } catch {
    return [];
  }
}
