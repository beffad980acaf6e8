import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type AgentCheckup, inspectAgent } from '../agents/doctor.ts';
import { type AgentDefinition, builtInAgents } from '../agents/index.ts';
import { toErrorData } from '../core/index.ts';
import {
  type CommandIo,
  type ExitCode,
  exitCodes,
  findProject,
  findUpwards,
  ignoredFolders,
  loadAgents,
  openStore,
  openStoredRuns,
  type Project,
  type ProjectOptions,
  readConfig,
  storeFile,
  writeLines,
} from '../project/index.ts';
import { jsonText } from '../terminal/index.ts';
import { safeText } from '../view/index.ts';

interface DoctorCommandOptions extends ProjectOptions {
  readonly json?: boolean | undefined;
}

/** Checks what runs depend on and prints how to fix problems. Exits with `failed` if a check fails. */
export async function doctorCommand(
  { io }: { readonly io: CommandIo },
  options: DoctorCommandOptions,
): Promise<ExitCode> {
  const project = findProject(io, options);
  const findings: CheckResult[] = [];
  for (const checkup of checkups) findings.push(await checkup({ io, project }));
  findings.push(...(await inspectAgents({ io, project })));
  for (const finding of findings)
    writeLines(io.out, options.json ? jsonText(finding) : safeText(format(finding)));
  return findings.some(({ level }) => level === 'fail') ? exitCodes.failed : exitCodes.ok;
}

function format({ level, name, message, next }: CheckResult): string {
  const line = `${level.padEnd(4)} ${name}: ${message}`;
  return next === undefined ? line : `${line}\n     ${next}`;
}

/** Checks the agents of the project and the built-in ones. An unusable agent of the project fails, a built-in one warns. */
async function inspectAgents(patient: DoctorContext): Promise<readonly CheckResult[]> {
  const { io, project } = patient;
  const agents = await agentsOf(patient);
  if (!(agents instanceof Map)) return [agents as CheckResult];
  const options = { path: io.env['PATH'], env: io.env, cwd: project.root, versions: new Map() };
  return Promise.all(
    [...agents.values()].map(async agent => findingOf(agent, await inspectAgent(agent, options))),
  );
}

async function agentsOf({
  io,
  project,
}: DoctorContext): Promise<ReadonlyMap<string, AgentDefinition> | CheckResult> {
  try {
    return new Map(await loadAgents({ io, project }, await readConfig(project, io)));
  } catch (thrown) {
    const { message } = toErrorData(thrown);
    return { name: 'agents', level: 'fail', message, next: 'fix it, then check it with: reprise validate' };
  }
}

function findingOf(agent: AgentDefinition, checkup: AgentCheckup): CheckResult {
  const { program, version, usable, problem, whatToDo } = checkup;
  const name = `agent ${agent.name}`;
  const kind = agent.name === agent.kind ? '' : `${agent.kind}, `;
  if (usable) {
    const unrestricted = agent.kind === 'command' ? 'nothing restricts what it does' : undefined;
    const message = [version, program, unrestricted].filter(Boolean).join(', ');
    return { name, level: 'ok', message: `${kind}${message || 'ready'}` };
  }
  return {
    name,
    level: builtInAgents.get(agent.name) === agent ? 'warn' : 'fail',
    message: `${kind}${problem ?? 'not usable'}`,
    ...(whatToDo ? { next: whatToDo } : {}),
  };
}

/** Result of one check. */
interface CheckResult {
  readonly name: string;
  readonly level: 'ok' | 'warn' | 'fail';
  readonly message: string;
  /** How to fix the problem. */
  readonly next?: string | undefined;
}

interface DoctorContext {
  readonly io: CommandIo;
  readonly project: Project;
}

type Checkup = (patient: DoctorContext) => Promise<CheckResult>;

const oldestNode = [20, 19] as const;

const node: Checkup = async () => {
  const name = 'node';
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const isNewEnough = major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1]);
  if (isNewEnough) return { name, level: 'ok', message: process.version };
  return {
    name,
    level: 'fail',
    message: `${process.version} is too old`,
    next: `install Node.js ${oldestNode.join('.')} or newer`,
  };
};

const git: Checkup = async patient => {
  const name = 'git';
  const printed = await output(patient, 'git', ['--version']);
  const version = printed && /(\d+)\.(\d+)(\.\d+)*/.exec(printed);
  if (!version)
    return {
      name,
      level: 'warn',
      message: 'not found',
      next: 'install git 2.38 or newer; steps that work in a repository need it',
    };
  const [text, major, minor] = version;
  if (Number(major) > 2 || (Number(major) === 2 && Number(minor) >= 38))
    return { name, level: 'ok', message: text };
  return { name, level: 'warn', message: `${text} is old`, next: 'install git 2.38 or newer' };
};

const bash: Checkup = async patient => {
  const name = 'bash';
  const printed = await output(patient, 'bash', ['--version']);
  if (printed) return { name, level: 'ok', message: printed.split('\n')[0] ?? '' };
  return {
    name,
    level: 'warn',
    message: 'not found, so `run` steps use sh',
    next: 'install bash, or set `shell: sh` in your steps',
  };
};

const store: Checkup = async ({ project }) => {
  const name = 'store';
  try {
    const { stateDir } = project;
    const file = storeFile(stateDir);
    await (await openStoredRuns(project, 'readonly'))?.close();
    const mode = existsSync(file) ? await probe(stateDir) : await probeFor(stateDir);
    if (mode.journal === 'wal' && mode.synchronous === full)
      return { name, level: 'ok', message: `${file} (write-ahead log, every commit synced)` };
    return {
      name,
      level: 'fail',
      message: `${file} has journal_mode=${mode.journal}, synchronous=${mode.synchronous}`,
      next: 'move the state to a local disk (--state-dir or REPRISE_STATE_DIR)',
    };
  } catch (thrown) {
    const { message, hint } = toErrorData(thrown);
    return {
      name,
      level: 'fail',
      message,
      next: hint ?? 'choose another folder for the state (--state-dir or REPRISE_STATE_DIR)',
    };
  }
};

/** `PRAGMA synchronous = FULL`. */
const full = 2;

async function probe(stateDir: string) {
  await (await openStore(stateDir)).close();
  const { openDatabase } = await import('../store/sqlite/connection.ts');
  const db = await openDatabase({ file: storeFile(stateDir) });
  try {
    const { journal_mode: journal } = db.prepare('PRAGMA journal_mode').get();
    const { synchronous } = db.prepare('PRAGMA synchronous').get();
    return { journal, synchronous };
  } finally {
    db.close();
  }
}

/** Probes a temporary store on the same disk, for use before the first run. */
async function probeFor(stateDir: string) {
  const folder = mkdtempSync(join(nearestFolder(stateDir), '.reprise-doctor-'));
  try {
    return await probe(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const nearestFolder = (path: string): string => findUpwards(path, existsSync) ?? '/';

const ignored: Checkup = async patient => {
  const name = 'ignored';
  if ((await output(patient, 'git', ['rev-parse', '--is-inside-work-tree'])) === undefined)
    return { name, level: 'ok', message: 'not in a git repository' };
  const [folder = ''] = ignoredFolders;
  if ((await output(patient, 'git', ['check-ignore', `${folder}x`])) !== undefined)
    return { name, level: 'ok', message: `git ignores ${folder}` };
  if (!existsSync(join(patient.project.root, folder)))
    return { name, level: 'ok', message: `the first run will add ${folder} to .git/info/exclude` };
  return {
    name,
    level: 'warn',
    message: `git does not ignore ${folder}`,
    next: `add ${folder} to .git/info/exclude or .gitignore`,
  };
};

/** `undefined` if git refuses the repository, which the check of the store reports. */
function stateFolderOf(project: Project): string | undefined {
  try {
    return project.stateDir;
  } catch {
    return undefined;
  }
}

const config: Checkup = async ({ project, io }) => {
  const name = 'config';
  try {
    await readConfig(project, io);
    return { name, level: 'ok', message: 'reprise.yaml is valid or absent' };
  } catch (thrown) {
    return {
      name,
      level: 'fail',
      message: toErrorData(thrown).message,
      next: 'fix it, then check it with: reprise validate',
    };
  }
};

const mebibyte = 2 ** 20;
const freeMiB = { fail: 50, warn: 1024 };

const disk: Checkup = async ({ project }) => {
  const name = 'disk';
  const folder = nearestFolder(stateFolderOf(project) ?? project.root);
  const { bavail, bsize } = await statfs(folder);
  const free = Math.floor((bavail * bsize) / mebibyte);
  const message = `${free} MiB free in ${folder}`;
  if (free >= freeMiB.warn) return { name, level: 'ok', message };
  return {
    name,
    level: free < freeMiB.fail ? 'fail' : 'warn',
    message,
    next: 'free some space: histories and logs are written there',
  };
};

/** All checks, in the order of the output. */
const checkups: readonly Checkup[] = [node, git, bash, store, ignored, config, disk];

const execute = promisify(execFile);

/** Standard output of a program; `undefined` if it failed or does not exist. */
async function output(
  { io, project }: DoctorContext,
  program: string,
  args: readonly string[],
): Promise<string | undefined> {
  try {
    const { stdout } = await execute(program, args, { cwd: project.root, env: { ...io.env } });
    return stdout.trim();
  } catch {
    return undefined;
  }
}
