interface Stream {
  readonly isTTY?: boolean | undefined;
}

/** `NO_COLOR` wins over `FORCE_COLOR`, and both over what the streams are. */
export function colorsOf(
  env: Readonly<Record<string, string | undefined>>,
  streams: { readonly out: Stream; readonly err: Stream },
): { readonly out: boolean; readonly err: boolean } {
  const { NO_COLOR: never, FORCE_COLOR: force, TERM: term } = env;
  if (never) return { out: false, err: false };
  if (force !== undefined) {
    const color = force !== '0' && force !== 'false';
    return { out: color, err: color };
  }
  const capable = ({ isTTY }: Stream) => isTTY === true && term !== 'dumb';
  return { out: capable(streams.out), err: capable(streams.err) };
}
