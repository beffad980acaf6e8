import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Option } from 'commander';
import type { TestContext } from '../cases/context.ts';
import { faultKinds } from '../cases/manifest/manifest.ts';
import { policyNames } from '../effects/explore/policies.ts';
import type { CommandIo } from '../project/host.ts';
import { findUpwards } from '../project/project.ts';
import { duration, oneOrMore, wholeNumber } from './option-values.ts';
import type { Registry } from './program.ts';
import { packageFolder, version } from './version.ts';

/** The commands that turn runs into tests, and play them. */
export function registerTestCommands({ io, add, program }: Registry): void {
  add('test [names...]', async (names, options) => {
    const { testCommand } = await import('../cases/test-command.ts');
    return testCommand(
      { io, context: testContext(io, program) },
      { ...options, names: names.filter(name => name !== undefined) },
    );
  })
    .description('Play test cases (cases/**) from their tapes: no agent is called, and nothing is paid for.')
    .option('--record', 'play them for real, and keep what happens as their tapes')
    .option('--step <name>', 'with --record: only this step; the others stay as they were recorded')
    .option('--accept', 'take the snapshots as they come out now')
    .addOption(
      new Option('--reporter <name>', 'how results are shown')
        .choices(['default', 'json', 'junit', 'github'])
        .default('default'),
    );

  add('explore [cases...]', async (names, options) => {
    const { exploreCommand } = await import('../cases/explore/command.ts');
    return exploreCommand(
      { io, context: testContext(io, program) },
      {
        ...options,
        names: names.filter(name => name !== undefined),
        forMs: options['for'] as number | undefined,
      },
    );
  })
    .description('Play test cases in orders, and with crashes, that have not happened yet, to find races.')
    .addOption(new Option('--policy <name>', 'how orders are chosen').choices(policyNames))
    .option('--for <duration>', 'how long at most, for each case (default: 60s)', duration)
    .option('--schedules <n>', 'how many orders at most, for each case', wholeNumber(1))
    .option('--seed <n>', 'where chance begins: the same seed gives the same orders', wholeNumber(0))
    .option('--crashes', 'kill steps at every moment, and start them again: in the recorded order first')
    .option('--crash-points', 'only that: every crash of the recorded order, and no other order')
    .option(
      '--faults [kinds]',
      `let things fail: all, or some of ${faultKinds.join(',')}`,
      oneOrMore(faultKinds),
    )
    .option('--check-keys', 'compare what effects change with what they say that they write')
    .option('--twice', 'play every order twice, and compare who could go on at each moment')
    .addOption(
      new Option('--on <world>', 'only in a model in memory, or only on real git').choices(['memory', 'git']),
    )
    .option('--race <name>', 'play a race again that was found before')
    .option('--dry-run', 'keep no file of what is found')
    .option('--json', 'print what came of it as JSON, one line for each case');

  add('capture <run> <name>', async ([run = '', name = ''], options) => {
    const { captureCommand } = await import('../cases/capture/capture.ts');
    return captureCommand({ io, context: testContext(io, program) }, { ...options, run, name });
  })
    .description('Make a test case of a run: cases/<name>, which replays without any agent.')
    .option('--force', 'replace the case of that name');
}

/** What cases are played with: the same program, in this process. */
export function testContext(
  { env, cwd, interrupt }: Pick<CommandIo, 'env' | 'cwd'> & { readonly interrupt?: AbortSignal },
  program: TestContext['program'],
): TestContext {
  const installed = findUpwards(cwd, folder => existsSync(join(folder, 'node_modules')));
  return {
    program,
    env,
    interrupt,
    cwd,
    version: version(),
    packages: {
      installed: installed === undefined ? undefined : join(installed, 'node_modules'),
      reprise: packageFolder(),
    },
  };
}
