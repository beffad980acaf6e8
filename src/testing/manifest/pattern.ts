/**
 * What output is searched for: a text between slashes is a regular expression, perhaps with flags after it;
 * every other text is itself. Throws a SyntaxError for an expression that is none.
 */
export function patternOf(written: string): string | RegExp {
  const [, source, flags] = /^\/([\s\S]+)\/([dgimsuvy]*)$/.exec(written) ?? [];
  return source === undefined ? written : new RegExp(source, flags);
}
