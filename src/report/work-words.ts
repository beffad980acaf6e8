import type { EventOf } from '../core/events.ts';
import { isJsonObject, type Json } from '../core/json.ts';
import { firstLine, furtherLines, safeLine } from '../view/safe-text.ts';
import { count } from './count.ts';

type LandingEnd = EventOf<'landing.ended'>['data'];

/** `3 files, +10 -2`. */
export const changesText = ({ files, insertions, deletions }: EventOf<'workspace.saved'>['data']): string =>
  `${count(files, 'file')}, +${insertions} -${deletions}`;

/** What is special about a worker: `file=a.md, os=linux`. */
export function itemText(item: Json | undefined): string {
  if (item === undefined || item === null) return '';
  if (!isJsonObject(item)) return safeLine(JSON.stringify(item));
  return Object.entries(item)
    .map(([name, value]) => safeLine(`${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`))
    .join(', ');
}

export function landingText({ outcome, onto, branch, commit, commits, message }: LandingEnd): string {
  const target = safeLine(onto);
  const why = message ? `: ${safeLine(message)}` : '';
  switch (outcome) {
    case 'landed': {
      const many = commits === undefined ? '' : ` ${count(commits, 'commit')}`;
      return `landed${many} on ${target}${commit ? ` (${commit.slice(0, 10)})` : ''}`;
    }
    case 'nothing-to-land':
      return `nothing to land: ${target} has it all`;
    case 'conflict':
      return `${safeLine(branch)} conflicts with ${target}${why}`;
    case 'verify-failed':
      return `not landed on ${target}: the verification failed${afterwards(message)}`;
    case 'lost-the-race':
      return `not landed: ${target} moved again and again${why}`;
    case 'fenced':
      return `not landed on ${target}: somebody else has the work now${why}`;
    case 'main-checkout-in-the-way':
      return `not landed: a checkout of ${target} is in the way${why}`;
  }
}

export const parkedText = ({ branch, message }: EventOf<'landing.parked'>['data']): string =>
  `parked on ${safeLine(branch)}: ${firstLine(message)}${afterwards(message)}`;

/** The last of what was printed, which is why in most cases: all of it is in the history, and no line can hold it. */
function afterwards(message = ''): string {
  const last = furtherLines(message).findLast(line => line.trim() !== '');
  return last === undefined ? '' : `: ${safeLine(last.trim())}`;
}

/** `implement -> review (focus=tests): P1, the only ready task`. */
export function transitionText({ from, to, args = {}, why }: EventOf<'transition.taken'>['data']): string {
  const given = Object.entries(args).map(([name, value]) => safeLine(`${name}=${value}`));
  const told = given.length > 0 ? ` (${given.join(', ')})` : '';
  return `${safeLine(from)} -> ${safeLine(to)}${told}${why ? `: ${safeLine(why)}` : ''}`;
}

/** Several branches that landed are said as one; the first that did not is what matters. */
export function landingsText(landings: readonly LandingEnd[]): string {
  const [first, ...others] = landings;
  if (!first) return '';
  const refused = landings.find(({ outcome }) => outcome !== 'landed' && outcome !== 'nothing-to-land');
  if (refused || others.length === 0) return landingText(refused ?? first);
  const commits = landings.reduce((sum, each) => sum + (each.commits ?? 0), 0);
  const last = landings.findLast(({ outcome }) => outcome === 'landed') ?? first;
  return landingText({ ...last, commits });
}

/** How one worker of several was chosen. */
export function selectionText({ winner, by, candidates, reason }: EventOf<'selection.made'>['data']): string {
  const score = candidates.find(({ worker }) => worker === winner)?.score;
  const passed = candidates.filter(each => each.passed).length;
  const scored = score === undefined ? '' : ` with ${score}`;
  const why = reason ? `: ${safeLine(reason)}` : '';
  return `worker ${winner} was selected by ${by}${scored} (${passed} of ${candidates.length} passed)${why}`;
}

export function fanOutText({ kind, total, items }: EventOf<'fanout.expanded'>['data']): string {
  const values = kind === 'matrix' ? (items ?? []).map(itemText).join('; ') : '';
  return `${count(total, 'worker')}${values === '' ? '' : `: ${values}`}`;
}
