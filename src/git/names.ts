import { createHash } from 'node:crypto';
import { join } from 'node:path';

/** Parts of the name of a workspace. */
interface WorkspaceName {
  readonly workflow: string;
  readonly run: string;
  /** Path of the step, such as `deploy/build`. */
  readonly step: string;
  /** Index of a fanned-out copy. */
  readonly worker?: number | undefined;
}

/** Prefix of all branches that Reprise creates. */
export const branchPrefix = 'reprise/';

/** Returns `reprise/<workflow>/<run>/<step>[/worker_<i>]`. Different names give different branches. */
export const workspaceBranch = (name: WorkspaceName): string => `${branchPrefix}${segments(name).join('/')}`;

/** Returns `<folder>/<workflow>/<run>/<step>[/worker_<i>]`. Different names give different folders. */
export const workspacePath = (folder: string, name: WorkspaceName): string => join(folder, ...segments(name));

/**
 * Returns the folder for checkouts in which a run verifies what it lands. It is not in the git folder: Jest, for one,
 * finds no tests below a folder called `.git`.
 */
export const landingFolder = (folder: string, runId: string): string => join(folder, '.landing', runId);

const segments = ({ workflow, run, step, worker }: WorkspaceName): readonly string[] => [
  safeSegment(workflow),
  safeSegment(run),
  ...step.split('/').map(part => safeSegment(part, /^worker_\d+$/)),
  ...(worker === undefined ? [] : [`worker_${worker}`]),
];

const longestSegment = 60;

/**
 * Returns a segment of a branch or path that git, shells and file systems accept. A changed text gets a digest of the
 * original, so that different texts never collide.
 */
export function safeSegment(text: string, reserved?: RegExp): string {
  const plain = text
    .normalize('NFC')
    .replace(/[^\p{L}\p{N}_.-]+/gu, '-')
    .replace(/\.{2,}/g, '.')
    .replace(/^[.-]+|[.-]+$|(\.lock)+$/giu, '');
  const short = [...plain]
    .slice(0, longestSegment)
    .join('')
    .replace(/[.-]+$/, '');
  if (short !== '' && short === text && !reserved?.test(text)) return text;
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 8);
  return short === '' ? digest : `${short}-${digest}`;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: git refuses control characters
const refused = /[\x00-\x20\x7f~^:?*[\\]|\.\.|@\{|\/\/|\/\.|\.lock(\/|$)|^[./-]|[./]$/;

/** Whether git accepts the name for a branch and never mistakes it for an option or another revision. */
export const isBranchName = (name: string): boolean =>
  name !== '' && name !== '@' && name !== 'HEAD' && !refused.test(name);

/** Returns a file name for a message. Quotes names that could be misread or could control a terminal. */
export const printable = (name: string): string =>
  /^[\p{L}\p{N}_./@+ -]+$/u.test(name) && name.trim() === name ? name : escaped(name);

const maxListed = 10;

/** Lists file names for a message: the first ten, and the number of the others. */
export const printableList = (names: readonly string[]): string =>
  [
    ...names.slice(0, maxListed).map(printable),
    ...(names.length > maxListed ? [`and ${names.length - maxListed} more`] : []),
  ].join(', ');

/** Escapes all control and format characters, some of which JSON does not escape. */
const escaped = (text: string): string =>
  JSON.stringify(text).replace(
    /\p{Cc}|\p{Cf}/gu,
    char => `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  );

/** Quotes a word for a command that is pasted into a shell. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** Quotes a path for git's settings and for lists of folders, which are separated by colons. */
export const quotedPath = (path: string): string =>
  `"${path.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`;

/** Committer of changes that a step left uncommitted. */
export const committer = { name: 'Reprise', email: 'reprise@localhost' } as const;
