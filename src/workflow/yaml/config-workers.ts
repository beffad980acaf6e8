import { z } from 'zod';
import { isJsonObject, type Json } from '../../core/json.ts';
import { identifier, positiveInteger, someText } from './schema-parts.ts';
import type { Complaint } from './source/problem-list.ts';

const dispatchers = ['built-in', 'agent'] as const;
const landModes = ['main', 'branch', 'pr'] as const;

/** Where tasks are written. */
export type TaskSource =
  /** Markdown files in a folder of the branch that is landed on; relative to the top of the repository. */
  | { readonly kind: 'folder'; readonly folder: string }
  /** What a command prints as JSON. */
  | { readonly kind: 'command'; readonly command: string };

/** How `reprise worker` works. What depends on the repository has no default here. */
export interface WorkerSettings {
  /** What is landed on. */
  readonly branch?: string;
  /** Who takes tasks that name nobody. */
  readonly agent?: string;
  readonly dispatch: (typeof dispatchers)[number];
  readonly land: (typeof landModes)[number];
  readonly remote: string;
  /** There if `land` is `pr`. */
  readonly prCommand?: string;
  readonly verify?: string;
  /** How often an agent is asked to solve the conflicts of one task. */
  readonly resolve: number;
  /** How often an agent is told that what it wants next cannot be. */
  readonly corrections: number;
  /** How many agents may take turns at one task. */
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

/** A name that git accepts for a branch, as far as a look at it can tell. */
const branchName = someText.refine(isBranchName, 'is not a name that a branch can have');

const folderInside = someText.refine(
  folder => tidy(folder) !== undefined,
  'must be a folder inside of the repository, relative to its top',
);

export const tasksSchema = z
  .strictObject({
    folder: folderInside
      .optional()
      .describe('A folder of markdown files, one a task, relative to the top of the repository; `issues`.'),
    command: someText
      .optional()
      .describe('A command that prints the tasks as a JSON array of maps with `id` and `title`, instead.'),
  })
  .describe('Where the tasks of `reprise worker` come from.');

export const workersSchema = z
  .strictObject({
    branch: branchName
      .optional()
      .describe('The branch that is worked on and landed on; `main`, or else the one that is checked out.'),
    agent: identifier
      .optional()
      .describe('The agent that takes tasks that name none; `implement`, or else `claude`.'),
    dispatch: z
      .enum(dispatchers)
      .optional()
      .describe('Who picks the next task: Reprise itself (the default), or the agent called `dispatch`.'),
    land: z
      .enum(landModes)
      .optional()
      .describe(
        'What happens to finished work: it lands on the branch (`main`, the default), is left on `reprise/task/<id>` (`branch`), or that branch is pushed and `pr_command` run (`pr`).',
      ),
    remote: someText.optional().describe('Where `land: pr` pushes to; `origin`.'),
    pr_command: someText
      .optional()
      .describe('What `land: pr` runs once `$REPRISE_BRANCH` is pushed. It needs one.'),
    verify: someText.optional().describe('A command that must pass on the result before anything moves.'),
    resolve: times.optional().describe('How often an agent is asked to solve conflicts of one task; 2.'),
    corrections: times
      .optional()
      .describe('How often an agent is told that its `<next>` cannot be followed, before it is given up; 2.'),
    max_agents: positiveInteger.optional().describe('How many agents may take turns at one task; 12.'),
  })
  .describe('How `reprise worker` works.');

/** What the shapes alone do not forbid. */
export function workerComplaints(config: Json): readonly Complaint[] {
  const { tasks, workers } = isJsonObject(config) ? config : {};
  return [
    ...(isJsonObject(tasks) ? taskComplaints(tasks) : []),
    ...(isJsonObject(workers) && workers['land'] === 'pr' && workers['pr_command'] === undefined
      ? [
          {
            path: ['workers', 'land'],
            message: '`workers.land: pr` needs `workers.pr_command`',
            hint: 'for example: pr_command: gh pr create --fill --head "$REPRISE_BRANCH"',
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
        message: '`tasks.folder` and `tasks.command` exclude each other',
        hint: 'keep one of them',
      },
    ];
  return [];
}

/** What to write instead of what does not fit. */
export const workerHint = (path: readonly (string | number)[]): string | undefined => hints[path.join('.')];

const hints: Readonly<Record<string, string>> = {
  tasks: 'for example: tasks: { folder: issues }',
  workers: 'for example: workers: { verify: npm test }',
  'workers.land': 'which branch `main` stands for is said by `workers.branch`',
};

/** Of a section that fits. An empty one says nothing. */
export function toTaskSource({ folder, command }: z.infer<typeof tasksSchema>): TaskSource {
  if (command !== undefined) return { kind: 'command', command };
  const tidied = folder === undefined ? undefined : tidy(folder);
  return tidied === undefined ? defaultTaskSource : { kind: 'folder', folder: tidied };
}

export function toWorkerSettings(written: z.infer<typeof workersSchema>): WorkerSettings {
  const { branch, agent, pr_command: prCommand, verify } = written;
  const usual = defaultWorkerSettings;
  return {
    dispatch: written.dispatch ?? usual.dispatch,
    land: written.land ?? usual.land,
    remote: written.remote ?? usual.remote,
    resolve: written.resolve ?? usual.resolve,
    corrections: written.corrections ?? usual.corrections,
    maxAgents: written.max_agents ?? usual.maxAgents,
    ...(branch === undefined ? {} : { branch }),
    ...(agent === undefined ? {} : { agent }),
    ...(prCommand === undefined ? {} : { prCommand }),
    ...(verify === undefined ? {} : { verify }),
  };
}

/** With `/` between its parts and none at the end; `undefined` if it is not below the top. */
function tidy(folder: string): string | undefined {
  if (folder.startsWith('/') || folder.includes('\\') || folder.includes('\0')) return undefined;
  const parts = folder.split('/').filter(part => part !== '' && part !== '.');
  return parts.length === 0 || parts.includes('..') || parts[0] === '.git' ? undefined : parts.join('/');
}

function isBranchName(name: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  const forbidden = /[\u0000-\u0020\u007F~^:?*[\\]|\.\.|@\{|\/\/|^[-/]|[/.]$|^@$/;
  return !forbidden.test(name) && name.split('/').every(part => !/^\.|\.lock$/.test(part));
}
