/**
 * Breaks a copy of the product in one place at a time and plays the recorded cases there: every mutation must make a case
 * fail. Arguments select the mutations whose names contain one of them.
 */
import { rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { breakCopy, compileSource, makeCopy, makeFolder } from './copy.ts';
import { type Mutation, mutations } from './mutations.ts';
import { playCases } from './play-cases.ts';
import { firstLine, titleOf, type Verdict, verdictLines } from './table.ts';

const wanted = process.argv.slice(2);
const chosen = mutations.filter(
  ({ name }) => wanted.length === 0 || wanted.some(part => name.includes(part)),
);
const began = performance.now();
const folder = makeFolder();
process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

process.exitCode = await check();

async function check(): Promise<number> {
  const dist = compileSource(folder);
  const copies = Array.from(
    { length: Math.min(chosen.length, Math.max(2, availableParallelism())) },
    (_, at) => makeCopy({ folder, name: `copy-${at}`, dist }),
  );
  const [first] = copies;
  if (first === undefined) {
    console.error(`no mutation is named ${wanted.join(' or ')}`);
    return 1;
  }
  const outdated = chosen.flatMap(mutation => whyNotApplied(first, mutation));
  if (outdated.length > 0) {
    console.error(outdated.join('\n\n'));
    return 1;
  }
  const sound = await playCases(first);
  const unsound = sound.results.filter(({ status }) => status !== 'passed');
  if (sound.problem || unsound.length > 0) {
    console.error('the cases do not pass even without a mutation:');
    for (const result of unsound) console.error(`  ${titleOf(result)}: ${firstLine(result)}`);
    if (sound.problem) console.error(`  ${sound.problem}`);
    return 1;
  }
  const verdicts = await tryAll(copies);
  const missed = verdicts.filter(({ caught }) => caught.length === 0);
  const seconds = ((performance.now() - began) / 1000).toFixed(0);
  console.log(
    `\n${verdicts.length - missed.length} of ${verdicts.length} mutations caught by ${sound.results.length} cases in ${seconds} s`,
  );
  for (const { mutation, problem } of missed) {
    console.error(`not caught: ${mutation.name} (${problem ?? mutation.breaks})`);
  }
  return missed.length === 0 ? 0 : 1;
}

/** Returns an error message if the mutation does not apply. Called for all mutations before any case is played. */
function whyNotApplied(copy: string, mutation: Mutation): readonly string[] {
  try {
    breakCopy(copy, mutation)();
    return [];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

/** Tries the mutations in parallel, one at a time in each copy. */
async function tryAll(copies: readonly string[]): Promise<readonly Verdict[]> {
  const left = [...chosen];
  const verdicts: Verdict[] = [];
  await Promise.all(
    copies.map(async copy => {
      for (let mutation = left.shift(); mutation; mutation = left.shift()) {
        const revert = breakCopy(copy, mutation);
        const { results, problem } = await playCases(copy);
        revert();
        const verdict = { mutation, problem, caught: results.filter(({ status }) => status === 'failed') };
        verdicts.push(verdict);
        for (const line of verdictLines(verdict)) console.log(line);
      }
    }),
  );
  return verdicts;
}
