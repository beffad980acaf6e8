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
