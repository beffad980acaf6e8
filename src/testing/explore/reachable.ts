/** All commits that one leads to, itself among them. */
export function reachable(
  tip: string | undefined,
  parentsOf: (commit: string) => readonly string[],
): ReadonlySet<string> {
  const found = new Set<string>();
  const pending = tip === undefined ? [] : [tip];
  for (let id = pending.pop(); id !== undefined; id = pending.pop()) {
    if (found.has(id)) continue;
    found.add(id);
    pending.push(...parentsOf(id));
  }
  return found;
}
