/** What `live` may say for a script: what it is, exactly or as one of several, or the step that it belongs to. */
export const isLive = (
  live: readonly string[],
  { role, step }: { readonly role: string; readonly step: string },
): boolean => live.some(name => name === role || name === step || name === groupOf(role));

/** `check-1` is one of the `checks`. */
function groupOf(role: string): string | undefined {
  const [, kind = role] = /^(.+)-\d+$/.exec(role) ?? [];
  return groups[kind];
}

const groups: Readonly<Record<string, string>> = {
  run: 'run',
  check: 'checks',
  gate: 'gates',
  rank: 'rank',
  setup: 'setup',
  teardown: 'teardown',
  verify: 'verify',
  'verify-setup': 'verify',
};
