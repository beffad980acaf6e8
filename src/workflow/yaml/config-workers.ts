import { z } from 'zod';
import { isJsonObject, type Json } from '../../core/index.ts';
import { identifier, positiveInteger, someText } from './schema-work.ts';
import type { Complaint } from './source/problem-list.ts';

const dispatchers = ['built-in', 'agent'] as const;
const landModes = ['main', 'branch', 'pr'] as const;

/** Source of the tasks of `reprise worker`. */
export type TaskSource =
  /** Markdown files in a folder of the target branch. The path is relative to the root of the repository. */
  | { readonly kind: 'folder'; readonly folder: string }
  /** Command that prints tasks as JSON. */
  | { readonly kind: 'command'; readonly command: string };

/** Settings of `reprise worker`. An optional field has a default that depends on the repository. */
export interface WorkerSettings {
  /** Branch that work lands on. */
  readonly branch?: string;
  /** Agent for tasks that name none. */
  readonly agent?: string;
  readonly dispatch: (typeof dispatchers)[number];
  readonly land: (typeof landModes)[number];
  readonly remote: string;
  /** Command that opens the pull request. Set if `land` is `pr`. */
  readonly prCommand?: string;
  readonly verify?: string;
  /** Number of times that an agent is asked to resolve the conflicts of one task. */
  readonly resolve: number;
  /** Number of times that an agent may correct an invalid `<next>` instruction. */
  readonly corrections: number;
  /** Maximum number of agent turns on one task. */
  readonly maxAgents: number;
}

export const defaultTaskSource: TaskSource = { kind: 'folder', folder: 'issues' };

export const defaultWorkerSettings: WorkerSettings = {
  dispatch: 'built-in',
  land: 'main',
  remote: 'origin',
  resolve: 2,
  corrections: 2,
  maxAgents: 12,
};

const times = z.int().min(0);

/** A branch name that git accepts, as far as the name alone can tell. */
const branchName = someText.refine(isBranchName, 'is not a valid branch name');

const folderInside = someText.refine(
  folder => tidy(folder) !== undefined,
  'must be a folder inside the repository, relative to its root',
);

export const tasksSchema = z
  .strictObject({
    folder: folderInside
      .optional()
      .describe(
        'Folder of Markdown files, one for each task, relative to the root of the repository. Defaults to `issues`.',
      ),
    command: someText
      .optional()
      .describe(
        'Command that prints the tasks as a JSON array of objects with `id` and `title`. Replaces `folder`.',
      ),
  })
  .describe('Source of the tasks of `reprise worker`.');

export const workersSchema = z
  .strictObject({
    branch: branchName
      .optional()
      .describe(
        'Branch that workers start from and land on. Defaults to `main` if it exists, and otherwise to the branch that is checked out.',
      ),
    agent: identifier
      .optional()
      .describe(
        'Agent for tasks that name none. Defaults to `implement` if it is defined, and otherwise to `claude`.',
      ),
    dispatch: z
      .enum(dispatchers)
      .optional()
      .describe(
        'How the next task is picked: by fixed rules (`built-in`, the default), or by the agent named `dispatch` (`agent`).',
      ),
    land: z
      .enum(landModes)
      .optional()
      .describe(
        'What happens to finished work: it lands on the branch (`main`, the default), it stays on `reprise/task/<id>` (`branch`), or that branch is pushed and `pr_command` runs (`pr`).',
      ),
    remote: someText.optional().describe('Remote that `land: pr` pushes to. Defaults to `origin`.'),
    pr_command: someText
      .optional()
      .describe(
        'Command that `land: pr` runs after pushing `$REPRISE_BRANCH`; after a crash it may run twice. Required by `land: pr`.',
      ),
    verify: someText
      .optional()
      .describe('Command that must pass on the rebased work before the branch moves.'),
    resolve: times
      .optional()
      .describe(
        'Number of times that an agent is asked to resolve the conflicts of one task. Defaults to 2.',
      ),
    corrections: times
      .optional()
      .describe(
        'Number of times that an agent may correct an invalid `<next>` before the task is abandoned. Defaults to 2.',
      ),
    max_agents: positiveInteger
      .optional()
      .describe('Maximum number of agent turns on one task. Defaults to 12.'),
  })
  .describe('Settings of `reprise worker`.');

/** Finds contradictions that the schema cannot express. */
export function workerComplaints(config: Json): readonly Complaint[] {
  const { tasks, workers } = isJsonObject(config) ? config : {};
  return [
    ...(isJsonObject(tasks) ? taskComplaints(tasks) : []),
    ...(isJsonObject(workers) && workers['land'] === 'pr' && workers['pr_command'] === undefined
      ? [
          {
            path: ['workers', 'land'],
            message: '`workers.land: pr` requires `workers.pr_command`',
            hint: 'for example: pr_command: gh pr view "$REPRISE_BRANCH" || gh pr create --fill --head "$REPRISE_BRANCH"',
          },
        ]
      : []),
  ];
}

function taskComplaints({ folder, command }: { readonly [key: string]: Json }): readonly Complaint[] {
  if (folder !== undefined && command !== undefined)
    return [
      {
        path: ['tasks', 'command'],
        atKey: true,
        message: '`tasks.folder` and `tasks.command` cannot be combined',
        hint: 'remove one of them',
      },
    ];
  return [];
}

/** Returns an example or an explanation for an invalid value at a path. */
export const workerHint = (path: readonly (string | number)[]): string | undefined => hints[path.join('.')];

const hints: Readonly<Record<string, string>> = {
  tasks: 'for example: tasks: { folder: issues }',
  workers: 'for example: workers: { verify: npm test }',
  'workers.land': 'to land on a branch other than `main`, set `workers.branch`',
};

/** Converts a valid `tasks` section. An empty one gives the default. */
export function toTaskSource({ folder, command }: z.infer<typeof tasksSchema>): TaskSource {
  if (command !== undefined) return { kind: 'command', command };
  const tidied = folder === undefined ? undefined : tidy(folder);
  return tidied === undefined ? defaultTaskSource : { kind: 'folder', folder: tidied };
}

export function toWorkerSettings(written: z.infer<typeof workersSchema>): WorkerSettings {
  const { branch, agent, pr_command: prCommand, verify } = written;
  const defaults = defaultWorkerSettings;
  return {
    dispatch: written.dispatch ?? defaults.dispatch,
    land: written.land ?? defaults.land,
    remote: written.remote ?? defaults.remote,
    resolve: written.resolve ?? defaults.resolve,
    corrections: written.corrections ?? defaults.corrections,
    maxAgents: written.max_agents ?? defaults.maxAgents,
    ...(branch === undefined ? {} : { branch }),
    ...(agent === undefined ? {} : { agent }),
    ...(prCommand === undefined ? {} : { prCommand }),
    ...(verify === undefined ? {} : { verify }),
  };
}

/** Normalizes a relative path to `a/b`. Returns `undefined` if it is not inside the repository. */
function tidy(folder: string): string | undefined {
  if (folder.startsWith('/') || folder.includes('\\') || folder.includes('\0')) return undefined;
  const parts = folder.split('/').filter(part => part !== '' && part !== '.');
  return parts.length === 0 || parts.includes('..') || parts[0] === '.git' ? undefined : parts.join('/');
}

function isBranchName(name: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: git forbids control characters in branch names.
  const forbidden = /[\u0000-\u0020\u007F~^:?*[\\]|\.\.|@\{|\/\/|^[-/]|[/.]$|^@$/;
  return !forbidden.test(name) && name.split('/').every(part => !/^\.|\.lock$/.test(part));
}
