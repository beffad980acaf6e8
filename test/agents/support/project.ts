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

/** One of each kind; a rule makes Codex the app server. */
export const everyAgent = ['claude', 'codex', 'server', 'acp'] as const;
export type AgentName = (typeof everyAgent)[number];

/** What Claude Code makes of the tokens that the model says an answer has. */
export const costOfAnAnswer = 0.0006;

const agents = `
agents:
  claude: { kind: claude }
  codex: { kind: codex }
  server: { kind: codex, allow: ["Bash(npm test)"] }
  acp: { kind: acp, command: [claude-agent-acp] }
`;

/** A step for each agent, all at once: the model is asked for `do-<agent>`. */
export const stepsFor = (names: readonly AgentName[], rest = ''): string =>
  names
    .map(
      name => `  - { id: ${name}, agent: ${name}, prompt: "Please [[do-${name}]]."${rest && `, ${rest}`} }\n`,
    )
    .join('');

/** What the model says to each of them. */
export const scriptFor = (
  names: readonly AgentName[],
  replies: (name: AgentName) => ModelScript[string],
): ModelScript => Object.fromEntries(names.map(name => [`do-${name}`, replies(name)]));

export interface AgentProjectOptions {
  readonly script: ModelScript;
  /** The steps of the workflow `flow`. */
  readonly steps: string;
  /** What else it says. */
  readonly top?: string;
  /** More agents, indented by two. */
  readonly agents?: string;
  /** Codex has never been started before. */
  readonly isFirstStart?: boolean;
}

type Session = EventOf<'session.started'>['data'] & {
  readonly step: string;
  readonly worker: number | undefined;
};

/** A repository with real agents, the model that they all talk to, and the built CLI to be run in it. */
export interface AgentProject {
  readonly root: string;
  readonly model: FakeModel;
  /** What the CLI is started with. */
  readonly env: Readonly<Record<string, string>>;
  reprise(...args: readonly string[]): Promise<CliResult>;
  start(...args: readonly string[]): RunningCli;
  git(...args: readonly string[]): string;
  /** What a user would type there; gives what it prints. */
  shell(command: string): Promise<string>;
  /** All that happened in the newest run, as it happened. */
  history(): Promise<readonly HistoryEvent[]>;
  /** Whatever runs on behalf of the CLI, wherever it went. */
  processes(): readonly ProcessEntry[];
  /** The files of that name at the top of workspaces. */
  inWorkspaces(name: string): readonly string[];
  /** A reply that is given once for that name; then the model says `Done.` */
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
  // The first start makes its databases, which several first ones at once do not survive.
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
    // In the background: the model is in this process.
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

/** The sessions that were begun, with the id that each came to have. */
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

/** What each step, in the order of their names, came to. */
export const endsIn = (history: readonly HistoryEvent[]) =>
  Object.fromEntries(
    history.flatMap(({ type, step, worker, data }) =>
      type === 'step.completed' || type === 'step.failed' || type === 'step.cancelled'
        ? [[worker === undefined ? step : `${step}:${worker}`, { type, ...data }]]
        : [],
    ),
  );

/** Codes of failed runs are told with what the CLI said. */
export const expectCode = ({ code, stderr }: CliResult, expected: number): void =>
  expect(code, stderr).toBe(expected);
