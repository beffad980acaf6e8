import { createHash } from 'node:crypto';
import { join } from 'node:path';

/** What a workspace is for. */
interface WorkspaceName {
  readonly workflow: string;
  readonly run: string;
  /** Path of the step, such as `deploy/build`. */
  readonly step: string;
  /** Index of a fanned-out copy. */
  readonly worker?: number | undefined;
}

/** All branches that Reprise names itself are below it. */
export const branchPrefix = 'reprise/';

/** `reprise/<workflow>/<run>/<step>[/worker_<i>]`; different names give different branches. */
export const workspaceBranch = (name: WorkspaceName): string => `${branchPrefix}${segments(name).join('/')}`;

/** `<folder>/<workflow>/<run>/<step>[/worker_<i>]`; different names give different folders. */
export const workspacePath = (folder: string, name: WorkspaceName): string => join(folder, ...segments(name));

const segments = ({ workflow, run, step, worker }: WorkspaceName): readonly string[] => [
  safeSegment(workflow),
  safeSegment(run),
  ...step.split('/').map(part => safeSegment(part, /^worker_\d+$/)),
  ...(worker === undefined ? [] : [`worker_${worker}`]),
];

const longestSegment = 60;

/**
 * One part of a branch or path that git, shells and file systems all take. Whatever had to be changed gets a digest of
 * the original, so that two names never meet.
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

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what git refuses
const refused = /[\x00-\x20\x7f~^:?*[\\]|\.\.|@\{|\/\/|\/\.|\.lock(\/|$)|^[./-]|[./]$/;

/** Whether git takes it as the name of a branch, and nothing takes it for something else. */
export const isBranchName = (name: string): boolean =>
  name !== '' && name !== '@' && name !== 'HEAD' && !refused.test(name);

/** A file name as it can stand in a message: quoted as soon as it could be misread, or could steer a terminal. */
export const printable = (name: string): string =>
  /^[\p{L}\p{N}_./@+ -]+$/u.test(name) && name.trim() === name ? name : escaped(name);

/** JSON leaves some control characters as they are. */
const escaped = (text: string): string =>
  JSON.stringify(text).replace(
    /\p{Cc}|\p{Cf}/gu,
    char => `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  );

/** One word of a command that a person can paste into a shell. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** A path as git reads it in its settings, and in lists of folders, where colons would separate. */
export const quotedPath = (path: string): string =>
  `"${path.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`;

/** Who commits what a step left uncommitted. */
export const committer = { name: 'Reprise', email: 'reprise@localhost' } as const;
