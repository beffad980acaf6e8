import { relative } from 'node:path';
import { RepriseError } from '../../core/errors.ts';
import type { PolicyName } from '../../effects/explore/policies.ts';
import { exitCodes } from '../../project/exit-codes.ts';
import { type CommandIo, lookOf, writeLines } from '../../project/host.ts';
import { glyphsFor } from '../../terminal/glyphs.ts';
import { painter } from '../../terminal/text.ts';
import type { TestContext } from '../context.ts';
import { type FoundCase, findCases } from '../manifest/find.ts';
import { readCase } from '../manifest/load.ts';
import { type FaultKind, faultKinds } from '../manifest/manifest.ts';
import { opensLanes } from '../perform/step-io.ts';
import { caseTitle } from '../result.ts';
import { aboutOf, type ExploreOptions, type Failure, isTooMuch, mostDoubt, sumOf } from './contract.ts';
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
  /** Every crash of the recorded order, and nothing else. */
  readonly crashPoints?: boolean | undefined;
  /** All kinds if only `true` is said. */
  readonly faults?: boolean | readonly FaultKind[] | undefined;
  readonly checkKeys?: boolean | undefined;
  readonly twice?: boolean | undefined;
  readonly on?: 'memory' | 'git' | undefined;
  /** Plays this race again, and nothing else. */
  readonly race?: string | undefined;
  readonly json?: boolean | undefined;
  /** Keeps no file of what is found. */
  readonly dryRun?: boolean | undefined;
}

const defaultForMs = 60_000;

/** Plays cases in orders that have not happened yet. */
export async function exploreCommand(
  { io, context }: { readonly io: CommandIo; readonly context: TestContext },
  options: ExploreCommandOptions,
): Promise<number> {
  const { cases } = findCases({ names: options.names, cwd: io.cwd });
  const explored = options.names.length > 0 ? cases : cases.filter(hasLanes);
  if (explored.length === 0)
    throw new RepriseError('CASE_NOT_FOUND', 'there are no test cases with lanes in cases/', {
      hint: 'make one of a run: reprise capture <run> <name>',
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

/** Among all cases, one that cannot be explored is no reason to leave the others out. */
async function exploreOrPass(
  given: { readonly io: CommandIo; readonly context: TestContext },
  found: FoundCase,
  options: ExploreCommandOptions,
): Promise<number> {
  try {
    return await exploreOne(given, found, options);
  } catch (error) {
    const isPassedOver =
      options.names.length === 0 && error instanceof RepriseError && error.code === 'CANNOT_EXPLORE';
    if (!isPassedOver) throw error;
    writeLines(given.io.err, `${caseTitle(found)} is not explored: ${error.message}`);
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

/** What was typed goes before what the case says. */
function settingsOf(found: FoundCase, options: ExploreCommandOptions, io: CommandIo): ExploreOptions {
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

type Budget = Pick<ExploreOptions, 'forMs' | 'schedules'>;
type SomeBudget = { readonly [Limit in keyof Budget]?: Budget[Limit] | undefined };

/** Who types a limit means that one, and not a smaller one that the case has for whenever it is tested. */
export function budgetOf(typed: SomeBudget, ofCase: SomeBudget | undefined): Budget {
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
  const { color, columns, unicode } = lookOf(io, 'out');
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
      ? [`  too many are inconclusive: more than ${100 * mostDoubt} % show nothing`]
      : []),
    ...(failure ? ['', ...failureLines(failure, { columns: columns - 2, replay }).map(indented)] : []),
    ...(kept ? [`  kept as ${kept}: reprise test plays it from now on`] : []),
    ...(drift
      ? [
          '',
          '  the model of git and git itself do not agree; on git the same schedule came to this:',
          `  ${drift.onGit}`,
          '  in memory it came to this:',
          ...failureLines(drift.failure, { columns: columns - 2, replay }).map(indented),
        ]
      : []),
  ];
}

/** What has to be asked for to see such a failure. */
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

/** With how often the schedule goes from one step to another. */
const withSwitches = (failure: Failure) => ({
  ...failure,
  switches: switchesBetweenSteps(failure.trace, failure.waits),
});

const indented = (line: string): string => (line === '' ? '' : `  ${line}`);

/** One line that is written over and over, on a terminal; nothing elsewhere. */
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
    throw new RepriseError('CASE_NOT_FOUND', `there is no race ${name} of that case`, {
      hint: 'see what is in the folder `races` of the case',
    });
  const failure = raceFailure(played.race, played.outcome);
  if (!failure) {
    writeLines(io.out, `${played.race.displayFile}: it does not happen any more`);
    return exitCodes.ok;
  }
  const { columns } = lookOf(io, 'out');
  const lines = diagramOf({ ...played, adversity: played.race }, columns - 2).map(indented);
  writeLines(io.out, [failure.message, '', ...lines, '', failure.hint ?? ''].join('\n'));
  return exitCodes.failed;
}
