import { relative } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import type { PolicyName } from '../../effects/explore/index.ts';
import { type CommandIo, exitCodes, styleOf, writeLines } from '../../project/index.ts';
import { glyphsFor, painter } from '../../terminal/index.ts';
import type { TestContext } from '../context.ts';
import { type FoundCase, findCases } from '../manifest/find.ts';
import { readCase } from '../manifest/load.ts';
import { type FaultKind, faultKinds } from '../manifest/manifest.ts';
import { opensLanes } from '../perform/step-io.ts';
import { caseTitle } from '../result.ts';
import {
  aboutOf,
  type CaseExploreOptions,
  type Failure,
  isTooMuch,
  mostInconclusive,
  sumOf,
} from './contract.ts';
import { type CaseExploration, exploreCase } from './explore.ts';
import { keepRace, type Race } from './race-file.ts';
import { playRaces, raceFailure } from './races.ts';
import { diagramOf, failureLines, progressLine, summaryLines, switchesBetweenSteps } from './text.ts';

export interface ExploreCommandOptions {
  readonly names: readonly string[];
  readonly policy?: PolicyName | undefined;
  readonly forMs?: number | undefined;
  readonly schedules?: number | undefined;
  readonly seed?: number | undefined;
  readonly crashes?: boolean | undefined;
  /** Tries only the crashes of the recorded schedule. */
  readonly crashPoints?: boolean | undefined;
  /** Fault kinds to inject; `true` means all kinds. */
  readonly faults?: boolean | readonly FaultKind[] | undefined;
  readonly checkKeys?: boolean | undefined;
  readonly twice?: boolean | undefined;
  readonly on?: 'memory' | 'git' | undefined;
  /** Name of a saved race to replay, without exploring. */
  readonly race?: string | undefined;
  readonly json?: boolean | undefined;
  /** Does not save the race that is found. */
  readonly dryRun?: boolean | undefined;
}

const defaultForMs = 60_000;

/** Plays test cases in schedules that differ from the recorded one. Returns the exit code. */
export async function exploreCommand(
  { io, context }: { readonly io: CommandIo; readonly context: TestContext },
  options: ExploreCommandOptions,
): Promise<number> {
  const { cases } = findCases({ names: options.names, cwd: io.cwd });
  const explored = options.names.length > 0 ? cases : cases.filter(hasLanes);
  if (explored.length === 0)
    throw new RepriseError('CASE_NOT_FOUND', 'no test case in cases/ runs a workflow or a worker', {
      hint: 'capture a run as a test case: reprise capture <run> <name>',
    });
  if (options.race !== undefined) return replayRace({ io, context }, explored, options.race);
  let worst = 0;
  for (const found of explored) {
    if (io.interrupt.aborted) break;
    worst = Math.max(worst, await exploreOrPass({ io, context }, found, options));
  }
  return io.interrupt.aborted ? Math.max(worst, exitCodes.failed) : worst;
}

const hasLanes = (found: FoundCase): boolean =>
  readCase(found).steps.some(({ command }) => opensLanes(command));

/** Explores a case; if no case was named, one that cannot be explored is skipped with a note. */
async function exploreOrPass(
  given: { readonly io: CommandIo; readonly context: TestContext },
  found: FoundCase,
  options: ExploreCommandOptions,
): Promise<number> {
  try {
    return await exploreOne(given, found, options);
  } catch (error) {
    const isSkipped =
      options.names.length === 0 && error instanceof RepriseError && error.code === 'CANNOT_EXPLORE';
    if (!isSkipped) throw error;
    writeLines(given.io.err, `skipped ${caseTitle(found)}: ${error.message}`);
    return exitCodes.ok;
  }
}

async function exploreOne(
  { io, context }: { readonly io: CommandIo; readonly context: TestContext },
  found: FoundCase,
  options: ExploreCommandOptions,
): Promise<number> {
  const settings = settingsOf(found, options, io);
  const title = caseTitle(found);
  const progress = liveLine(io, title);
  const result = await exploreCase(found, { ...settings, onProgress: progress.show }, context);
  progress.clear();
  const isRace = result.failure && aboutOf(result.failure) === 'order';
  const kept = result.failure && isRace && !options.dryRun ? keep(found, result.failure, io.cwd) : undefined;
  if (options.json) io.out(`${JSON.stringify({ case: title, ...asData(result), kept })}\n`);
  else writeLines(io.out, resultLines(title, result, { io, kept }).join('\n'));
  return isPassed(result) ? exitCodes.ok : exitCodes.failed;
}

/** Options of the command line take precedence over the `[explore]` table of the case. */
function settingsOf(found: FoundCase, options: ExploreCommandOptions, io: CommandIo): CaseExploreOptions {
  const { explore } = readCase(found);
  const faults = options.faults === true ? faultKinds : options.faults || explore?.faults || [];
  const crashes = options.crashPoints || (options.crashes ?? explore?.crashes ?? false);
  return {
    policy: options.policy ?? explore?.policy ?? 'auto',
    ...budgetOf(options, explore),
    seed: options.seed ?? explore?.seed ?? 1,
    crashes,
    crashPoints: options.crashPoints ? 'only' : crashes ? 'first' : undefined,
    faults,
    checkKeys: options.checkKeys,
    twice: options.twice,
    on: options.on,
    interrupt: io.interrupt,
  };
}

type ExploreBudget = Pick<CaseExploreOptions, 'forMs' | 'schedules'>;
type SomeBudget = { readonly [Limit in keyof ExploreBudget]?: ExploreBudget[Limit] | undefined };

/** Any limit on the command line replaces all limits of the case, which are meant for `reprise test` and are smaller. */
export function budgetOf(typed: SomeBudget, ofCase: SomeBudget | undefined): ExploreBudget {
  const isTyped = typed.forMs !== undefined || typed.schedules !== undefined;
  const { forMs = defaultForMs, schedules = Number.POSITIVE_INFINITY } = isTyped ? typed : (ofCase ?? {});
  return { forMs, schedules };
}

const isPassed = ({ worlds, failure, drift }: CaseExploration): boolean =>
  !failure && !drift && !isTooMuch(sumOf(worlds));

function keep(found: FoundCase, failure: Failure, cwd: string): string {
  return relative(cwd, keepRace(found.folder, raceOf(found, failure)));
}

export const raceOf = ({ name, group }: FoundCase, failure: Failure): Race => ({
  case: group === '' ? name : `${group}/${name}`,
  what: failure.what,
  message: failure.message,
  policy: failure.attempt.by,
  seed: failure.attempt.seed,
  isCalm: failure.isCalm,
  crashes: failure.adversity.crashes,
  faults: failure.adversity.faults,
  turns: failure.trace.map(({ lane, op }) => ({ lane, op })),
});

function resultLines(
  title: string,
  result: CaseExploration,
  { io, kept }: { readonly io: CommandIo; readonly kept: string | undefined },
): readonly string[] {
  const { color, columns, unicode } = styleOf(io, 'out');
  const paint = painter(color);
  const glyphs = glyphsFor(unicode);
  const { worlds, failure, drift, note } = result;
  const passed = isPassed(result);
  const head = passed
    ? `${paint('green', glyphs.completed)} ${title}`
    : `${paint('red', glyphs.failed)} ${paint('bold', title)}`;
  const replay = `reprise explore ${title}${kept ? ` --race ${kept.replace(/^.*\/|\.score$/g, '')}` : optionFor(failure)}`;
  return [
    head,
    ...(note === undefined ? [] : [`  ${paint('dim', note)}`]),
    ...worlds.flatMap(world => summaryLines(world).map(line => `  ${line}`)),
    ...(isTooMuch(sumOf(worlds))
      ? [
          `  failed: more than ${100 * mostInconclusive} % of the schedules are inconclusive, so the result proves nothing`,
        ]
      : []),
    ...(failure ? ['', ...failureLines(failure, { columns: columns - 2, replay }).map(indented)] : []),
    ...(kept ? [`  saved as ${kept}; \`reprise test\` replays it from now on`] : []),
    ...(drift
      ? [
          '',
          '  the in-memory model and real git disagree; on real git this schedule gives:',
          `  ${drift.onGit}`,
          '  in memory it gives:',
          ...failureLines(drift.failure, { columns: columns - 2, replay }).map(indented),
        ]
      : []),
  ];
}

/** Returns the option without which the failure does not show. */
function optionFor(failure: Failure | undefined): string {
  switch (failure && aboutOf(failure)) {
    case 'keys':
      return ' --check-keys';
    case 'chance':
      return ' --twice';
    case 'order':
    case undefined:
      return '';
  }
}

const asData = ({ failure, drift, ...result }: CaseExploration) => ({
  ...result,
  ...(failure ? { failure: withSwitches(failure) } : {}),
  ...(drift ? { drift: { ...drift, failure: withSwitches(drift.failure) } } : {}),
});

/** Adds the number of switches between commands. */
const withSwitches = (failure: Failure) => ({
  ...failure,
  switches: switchesBetweenSteps(failure.trace, failure.waits),
});

const indented = (line: string): string => (line === '' ? '' : `  ${line}`);

/** A progress line that is rewritten in place on a terminal. Prints nothing elsewhere. */
function liveLine(io: CommandIo, title: string) {
  let shown = 0;
  const isShown = io.isTTY.stderr;
  const everyMs = 100;
  return {
    show: (progress: Parameters<typeof progressLine>[0]) => {
      if (!isShown || progress.elapsedMs - shown < everyMs) return;
      shown = progress.elapsedMs;
      io.err(`\r\u001B[2K${`${title} ${progressLine(progress)}`.slice(0, io.columns - 1)}`);
    },
    clear: () => {
      if (isShown) io.err('\r\u001B[2K');
    },
  };
}

async function replayRace(
  { io, context }: { readonly io: CommandIo; readonly context: TestContext },
  [found]: readonly FoundCase[],
  name: string,
): Promise<number> {
  const [played] = found ? await playRaces(found, context, name) : [];
  if (!played)
    throw new RepriseError('CASE_NOT_FOUND', `the case has no race named ${name}`, {
      hint: 'the races of a case are the files in its `races` folder',
    });
  const failure = raceFailure(played.race, played.outcome);
  if (!failure) {
    writeLines(io.out, `${played.race.displayFile}: no longer reproduces`);
    return exitCodes.ok;
  }
  const { columns } = styleOf(io, 'out');
  const lines = diagramOf({ ...played, adversity: played.race }, columns - 2).map(indented);
  writeLines(io.out, [failure.message, '', ...lines, '', failure.hint ?? ''].join('\n'));
  return exitCodes.failed;
}
