import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { startProcess } from '../process/index.ts';
import type { AgentDefinition } from './agent.ts';
import { commandOf, findProgram, howToInstall } from './driver/program.ts';
import { within } from './driver/turns.ts';

/** Whether an agent can be used on this machine, and what to do if not. */
export interface AgentCheckup {
  readonly name: string;
  readonly kind: AgentDefinition['kind'];
  readonly installed: boolean;
  /** The file that would be started. */
  readonly program?: string | undefined;
  readonly version?: string | undefined;
  readonly usable: boolean;
  readonly problem?: string | undefined;
  readonly whatToDo?: string | undefined;
}

export interface InspectOptions {
  readonly path: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where a program with a slash in its name is looked for. */
  readonly cwd?: string | undefined;
}

const patienceMs = 15_000;

/** Looks for the program of an agent and asks it for its version. Starts no session; never rejects. */
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
  // What a program of the user's own does with an argument that it does not know is anybody's guess.
  if (kind === 'command') return { name, kind, installed: true, program, usable: true };
  const answer = await askForVersion(program, { env: { ...options.env, ...agent.env }, cwd });
  const found = { name, kind, installed: true, program } as const;
  return answer.ok
    ? { ...found, usable: true, version: answer.version }
    : { ...found, usable: false, problem: answer.problem, whatToDo: howToInstall(word) };
}

type VersionAnswer =
  | { readonly ok: true; readonly version: string }
  | { readonly ok: false; readonly problem: string };

async function askForVersion(
  program: string,
  { env, cwd }: { readonly env: InspectOptions['env']; readonly cwd: string },
): Promise<VersionAnswer> {
  const marker = { REPRISE_INCARNATION: randomUUID() };
  const running = startProcess({ argv: [program, '--version'], cwd, env, marker });
  await within(running.ended, patienceMs);
  const { ended } = await running.stop({ graceMs: 1000 });
  const end = await running.ended;
  if (end.kind === 'couldNotStart') return { ok: false, problem: end.error.message };
  if (ended.length > 0 && end.kind === 'signalled')
    return { ok: false, problem: `\`${program} --version\` does not end` };
  if (end.kind === 'exited' && end.exitCode === 0)
    return { ok: true, version: /\d+(\.\d+)+[\w.-]*/.exec(end.tail)?.[0] ?? end.tail.trim().slice(0, 80) };
  return { ok: false, problem: `\`${program} --version\` fails: ${end.tail.trim().slice(-300)}` };
}
