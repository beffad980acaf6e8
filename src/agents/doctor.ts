import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { startProcess } from '../process/index.ts';
import type { AgentDefinition } from './agent.ts';
import { commandOf, findProgram, howToInstall } from './driver/program.ts';
import { within } from './driver/turns.ts';

/** Whether an agent is usable on this machine, and how to make it so. */
export interface AgentCheckup {
  readonly name: string;
  readonly kind: AgentDefinition['kind'];
  readonly installed: boolean;
  /** Path of the program that a session would start. */
  readonly program?: string | undefined;
  readonly version?: string | undefined;
  readonly usable: boolean;
  readonly problem?: string | undefined;
  readonly whatToDo?: string | undefined;
}

export interface InspectOptions {
  readonly path: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder for programs with a slash in their name. Defaults to the folder for temporary files. */
  readonly cwd?: string | undefined;
  /** Versions that were asked for already, so that agents with the same program share one answer. */
  readonly versions?: Map<string, Promise<VersionAnswer>> | undefined;
}

const versionTimeoutMs = 15_000;

/** Locates the program of an agent and asks it for its version. Never starts a session and never rejects. */
export async function inspectAgent(agent: AgentDefinition, options: InspectOptions): Promise<AgentCheckup> {
  const { name, kind } = agent;
  const cwd = options.cwd ?? tmpdir();
  if (kind === 'scripted') return { name, kind, installed: true, usable: true };
  const word = commandOf(agent)[0] ?? '';
  const program = findProgram(word, { path: options.path, cwd });
  if (program === undefined) {
    const problem = `\`${word}\` was not found on PATH`;
    return { name, kind, installed: false, usable: false, problem, whatToDo: howToInstall(word) };
  }
  // A custom program might do anything with the argument `--version`.
  if (kind === 'command') return { name, kind, installed: true, program, usable: true };
  const { versions = new Map<string, Promise<VersionAnswer>>() } = options;
  const key = JSON.stringify([program, agent.env]);
  const asked = versions.get(key) ?? askForVersion(program, { env: { ...options.env, ...agent.env }, cwd });
  versions.set(key, asked);
  const answer = await asked;
  const found = { name, kind, installed: true, program } as const;
  return answer.ok
    ? { ...found, usable: true, version: answer.version }
    : { ...found, usable: false, problem: answer.problem, whatToDo: answer.whatToDo ?? howToInstall(word) };
}

type VersionAnswer =
  | { readonly ok: true; readonly version: string }
  | { readonly ok: false; readonly problem: string; readonly whatToDo?: string | undefined };

async function askForVersion(
  program: string,
  { env, cwd }: { readonly env: InspectOptions['env']; readonly cwd: string },
): Promise<VersionAnswer> {
  const marker = { REPRISE_INCARNATION: randomUUID() };
  const running = startProcess({ argv: [program, '--version'], cwd, env, marker });
  let isLate = true;
  await within(
    running.ended.then(() => {
      isLate = false;
    }),
    versionTimeoutMs,
  );
  await running.stop({ graceMs: 1000 });
  const end = await running.ended;
  if (end.kind === 'couldNotStart') return { ok: false, problem: end.error.message };
  if (isLate) {
    const problem = `\`${program} --version\` did not answer within ${versionTimeoutMs / 1000} s`;
    return { ok: false, problem, whatToDo: 'run it by hand, or try again when the machine is less busy' };
  }
  if (end.kind === 'exited' && end.exitCode === 0)
    return {
      ok: true,
      version: /\d+(\.\d+)+([-+][\w.-]*\w)?/.exec(end.tail)?.[0] ?? end.tail.trim().slice(0, 80),
    };
  return { ok: false, problem: `\`${program} --version\` failed: ${end.tail.trim().slice(-300)}` };
}
