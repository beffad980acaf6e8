import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { agentSteps } from './cases/agent-steps.ts';
import { conductor } from './cases/conductor.ts';
import { explore } from './cases/explore.ts';
import { fanOut } from './cases/fan-out.ts';
import { fold } from './cases/fold.ts';
import { journal } from './cases/journal.ts';
import { manyRuns } from './cases/many-runs.ts';
import { replay } from './cases/replay.ts';
import { resume } from './cases/resume.ts';
import { scale } from './cases/scale.ts';
import { sequence } from './cases/sequence.ts';
import { startUp } from './cases/start-up.ts';
import { tapeSize } from './cases/tape-size.ts';
import { worktrees } from './cases/worktrees.ts';
import type { BenchCase } from './lib/bench-case.ts';
import { buildContenders } from './lib/build.ts';
import { table } from './lib/format.ts';
import { plantedHeading, sectionUnder } from './lib/kept-section.ts';
import { machine } from './lib/machine.ts';
import { preparePeer } from './lib/peer.ts';
import { published } from './lib/published.ts';
import { describeTarget, isMissed, type Target } from './lib/targets.ts';

const cases: Readonly<Record<string, BenchCase>> = {
  sequence,
  'fan-out': fanOut,
  resume,
  fold,
  scale,
  'many-runs': manyRuns,
  'start-up': startUp,
  'agent-steps': agentSteps,
  conductor,
  explore,
  journal,
  'tape-size': tapeSize,
  replay,
  // Last, because the disk writes that it leaves pending disturb the cases after it.
  worktrees,
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** Writes RESULTS.md. */
    write: { type: 'boolean', default: false },
    /** Exits with 1 if a target is missed. */
    check: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '5' },
  },
});
const unknown = positionals.filter(name => !Object.hasOwn(cases, name));
if (unknown.length > 0 || !existsSync(new URL('../dist/index.js', import.meta.url))) {
  console.error(
    unknown.length > 0
      ? `no case ${unknown.join(', ')}; cases: ${Object.keys(cases).join(', ')}`
      : 'build first: npm run build',
  );
  process.exit(2);
}

const names = positionals.length > 0 ? positionals : Object.keys(cases);
await buildContenders();
const needsPeer = names.some(name => name === 'sequence' || name === 'fan-out');
const missing = needsPeer ? preparePeer().missing : undefined;
const lines: string[] = [];
const print = (text: string) => {
  lines.push(text, '');
  console.log(`${text}\n`);
};

print(
  `# Benchmark\n\n\`${['npm run bench --', ...process.argv.slice(2)].join(' ')}\`, ${new Date().toISOString().slice(0, 10)}`,
);
print(machine());
print(
  'All engines are durable: write-ahead log, `synchronous=FULL`, one fsync per commit. Contenders take turns in fresh processes, and each figure is the median of all rounds. Times depend on the disk and on the load of the machine; ratios within one run depend on them much less.',
);
if (missing) print(`**Without a peer.** ${missing}`);
const targets: Target[] = [];
for (const run of names.flatMap(name => cases[name] ?? [])) {
  const result = run({ peer: needsPeer && !missing, rounds: Number(values.rounds) });
  print(`## ${result.title}`);
  print(result.body);
  for (const note of result.notes ?? []) print(note);
  targets.push(...result.targets);
}
print('## Targets');
print(table(['', 'measured', 'target', ''], targets.map(describeTarget)));
if (values.write) {
  const file = new URL('RESULTS.md', import.meta.url);
  const planted = sectionUnder(plantedHeading, readFileSync(file, 'utf8'));
  writeFileSync(file, `${[...lines, ...(planted ? [planted, ''] : [])].join('\n')}\n${published}\n`);
}
if (values.check && targets.some(isMissed)) process.exitCode = 1;
