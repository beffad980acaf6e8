/** Arguments for `codex app-server`, or the first one that it cannot take. */
type AppServerArguments =
  | { readonly ok: true; readonly args: readonly string[] }
  | { readonly ok: false; readonly unsupported: string };

const passedOn = new Set(['-c', '--config', '--enable', '--disable']);

/** Translates arguments of `codex exec`. The app server takes few of them, but most settings can be given with `-c`. */
export function appServerArguments(args: readonly string[]): AppServerArguments {
  const translated: string[] = [];
  const folders: string[] = [];
  const rest = args.flatMap(splitAtEquals);
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '--strict-config') translated.push(word);
    else if (passedOn.has(word)) translated.push(word, rest.shift() ?? '');
    else if (word === '-m' || word === '--model') translated.push('-c', `model=${toml(rest.shift() ?? '')}`);
    else if (word === '--add-dir') folders.push(rest.shift() ?? '');
    else return { ok: false, unsupported: word };
  }
  const roots = `sandbox_workspace_write.writable_roots=[${folders.map(toml).join(', ')}]`;
  return { ok: true, args: [...translated, ...(folders.length > 0 ? ['-c', roots] : [])] };
}

const splitAtEquals = (word: string): readonly string[] => {
  const [, flag, value] = /^(--[\w-]+)=([\s\S]*)$/.exec(word) ?? [];
  return flag === undefined || value === undefined ? [word] : [flag, value];
};

/** Writes a TOML string, whose escapes are those of JSON. */
const toml = (text: string): string => JSON.stringify(text);

/** Says why the app server cannot take an argument. */
export const unsupportedArgument = (word: string) => ({
  message: `\`${word}\` cannot be used with \`allow\` or \`deny\``,
  hint: 'codex asks for permission only as an app server, which does not have it: use `-c key=value`, or remove the rules',
});
