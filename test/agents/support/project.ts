import { execFile, execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished } from 'vitest';
import type { EventOf, HistoryEvent } from '../../../src/core/events.ts';
import type { ProcessEntry } from '../../../src/process/table.ts';
import { endTrees, markedWith } from '../../../src/process/tree.ts';
import { type CliResult, createProject, parseLines, type RunningCli } from '../../e2e/run-inline.ts';
import type { ModelScript, Reply } from '../../support/fake-model/script.ts';
import { type FakeModel, startFakeModel } from '../../support/fake-model/server.ts';
import { acpEnvironment, claudeEnvironment, codexEnvironment } from './environment.ts';
import { installedAgents } from './install.ts';

/** One agent of each kind. `server` is Codex with a rule, which runs the app server. */
export const everyAgent = ['claude', 'codex', 'server', 'acp'] as const;
export type AgentName = (typeof everyAgent)[number];

/** Cost that Claude Code computes from the tokens of one answer of the model. */
export const costOfAnAnswer = 0.0006;

const agents = `
agents:
  claude: { kind: claude }
  codex: { kind: codex }
  server: { kind: codex, allow: ["Bash(npm test)"] }
  acp: { kind: acp, command: [claude-agent-acp] }
`;

/** Returns parallel steps, one for each agent. The model is asked for `do-<agent>`. */
export const stepsFor = (names: readonly AgentName[], rest = ''): string =>
  names
    .map(
      name => `  - { id: ${name}, agent: ${name}, prompt: "Please [[do-${name}]]."${rest && `, ${rest}`} }\n`,
    )
    .join('');

/** Returns the replies of the model to the steps of `stepsFor`. */
export const scriptFor = (
  names: readonly AgentName[],
  replies: (name: AgentName) => ModelScript[string],
): ModelScript => Object.fromEntries(names.map(name => [`do-${name}`, replies(name)]));

export interface AgentProjectOptions {
  readonly script: ModelScript;
  /** Steps of the workflow `flow`. */
  readonly steps: string;
  /** Other keys of the workflow. */
  readonly top?: string;
  /** Additional agents in YAML, indented by two spaces. */
  readonly agents?: string;
  /** Whether Codex has never been started before. */
  readonly isFirstStart?: boolean;
}

type Session = EventOf<'session.started'>['data'] & {
  readonly step: string;
  readonly worker: number | undefined;
};

/** Repository with real agents, their fake model, and the built CLI. */
export interface AgentProject {
  readonly root: string;
  readonly model: FakeModel;
  /** Environment of the CLI. */
  readonly env: Readonly<Record<string, string>>;
  reprise(...args: readonly string[]): Promise<CliResult>;
  start(...args: readonly string[]): RunningCli;
  git(...args: readonly string[]): string;
  /** Runs a shell command in the repository and returns its output. */
  shell(command: string): Promise<string>;
  /** Returns the events of the latest run. */
  history(): Promise<readonly HistoryEvent[]>;
  /** Returns all processes that the CLI started, even if they left its process tree. */
  processes(): readonly ProcessEntry[];
  /** Returns the paths of all files of that name in workspaces. */
  inWorkspaces(name: string): readonly string[];
  /** Returns the reply on the first call for a name, and `Done.` afterwards. */
  once(name: string, reply: Reply): Reply;
}

export async function agentProject(options: AgentProjectOptions): Promise<AgentProject> {
  const installed = installedAgents();
  if (!installed) throw new Error('the agents are not installed');
  const model = await startFakeModel(options.script);
  onTestFinished(() => model.close());
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'reprise-agents-')));
  onTestFinished(() => rmSync(home, { recursive: true, force: true, maxRetries: 5 }));
  const marker = { REPRISE_TEST_PROJECT: randomUUID() };
  const env = { ...environmentOf({ agents: installed, model, home }), ...marker };
  // The first start creates databases, which fails if several processes do so in parallel.
  if (!options.isFirstStart) await promisify(execFile)('sh', ['-c', 'codex app-server < /dev/null'], { env });
  const project = createProject({
    git: true,
    files: {
      'reprise.yaml': agents + (options.agents ?? ''),
      '.reprise/workflows/flow.yaml': `${options.top ?? ''}\nsteps:\n${options.steps}`,
    },
  });
  onTestFinished(async () => {
    await endTrees({ roots: [], marked: marker, graceMs: 2000 });
  });
  const { root } = project;
  const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' });
  git('config', 'user.name', 'ana');
  git('config', 'user.email', 'ana@example.com');
  git('symbolic-ref', 'HEAD', 'refs/heads/main');
  git('add', '--all');
  git('commit', '--quiet', '--message', 'Begin');
  const given = new Set<string>();
  return {
    root,
    model,
    once: (name, reply) => {
      if (given.has(name)) return { say: 'Done.' };
      given.add(name);
      return reply;
    },
    env,
    git,
    reprise: (...args) => project.run(args, { env }),
    start: (...args) => project.start(args, { env }),
    // Asynchronous, because the model runs in this process.
    shell: async command => (await promisify(execFile)('sh', ['-c', command], { cwd: root, env })).stdout,
    history: async () =>
      parseLines<HistoryEvent>((await project.run(['history', '--raw', '--json'], { env })).stdout),
    processes: () => markedWith(marker),
    inWorkspaces: name =>
      readdirSync(join(root, '.reprise'), { recursive: true, encoding: 'utf8' }).filter(
        file => file.startsWith('workspaces/') && basename(file) === name,
      ),
  };
}

type Surroundings = Parameters<typeof claudeEnvironment>[0];

function environmentOf(surroundings: Surroundings): Readonly<Record<string, string>> {
  const all = [claudeEnvironment, codexEnvironment, acpEnvironment].map(of => of(surroundings));
  const path = [...new Set(all.flatMap(env => env['PATH']?.split(':') ?? []))].join(':');
  return { ...Object.assign({}, ...all), PATH: path, TMPDIR: surroundings.home };
}

export const of = <T extends HistoryEvent['type']>(
  history: readonly HistoryEvent[],
  type: T,
): readonly EventOf<T>[] => history.filter(event => event.type === type) as unknown as readonly EventOf<T>[];

/** Returns the started sessions with their ids. */
export const sessionsIn = (history: readonly HistoryEvent[]): readonly Session[] =>
  history.flatMap((event, at) => {
    if (event.type !== 'session.started') return [];
    const isSame = ({ step, worker }: HistoryEvent) => step === event.step && worker === event.worker;
    const later = history.slice(at + 1).filter(isSame);
    const named = later.find(({ type }) => type === 'session.named' || type === 'session.started');
    const sessionId =
      event.data.sessionId ?? (named?.type === 'session.named' ? named.data.sessionId : undefined);
    return { ...event.data, sessionId, step: event.step ?? '', worker: event.worker };
  });

/** Returns the final event of each step, by step and copy. */
export const endsIn = (history: readonly HistoryEvent[]) =>
  Object.fromEntries(
    history.flatMap(({ type, step, worker, data }) =>
      type === 'step.completed' || type === 'step.failed' || type === 'step.cancelled'
        ? [[worker === undefined ? step : `${step}:${worker}`, { type, ...data }]]
        : [],
    ),
  );

/** Expects an exit code. A failure shows the stderr of the CLI. */
export const expectCode = ({ code, stderr }: CliResult, expected: number): void =>
  expect(code, stderr).toBe(expected);
