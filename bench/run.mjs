#!/usr/bin/env node
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { agentSteps } from './cases/agent-steps.mjs';
import { conductor } from './cases/conductor.mjs';
import { explore } from './cases/explore.mjs';
import { fanOut } from './cases/fan-out.mjs';
import { fold } from './cases/fold.mjs';
import { journal } from './cases/journal.mjs';
import { replay } from './cases/replay.mjs';
import { resume } from './cases/resume.mjs';
import { scale } from './cases/scale.mjs';
import { sequence } from './cases/sequence.mjs';
import { startUp } from './cases/start-up.mjs';
import { tapeSize } from './cases/tape-size.mjs';
import { worktrees } from './cases/worktrees.mjs';
import { table } from './lib/format.mjs';
import { plantedHeading, sectionUnder } from './lib/kept-section.mjs';
import { machine } from './lib/machine.mjs';
import { preparePeer } from './lib/peer.mjs';
import { published } from './lib/published.mjs';
import { describeTarget, isMissed } from './lib/targets.mjs';

const cases = {
  sequence,
  'fan-out': fanOut,
  resume,
  fold,
  scale,
  'start-up': startUp,
  'agent-steps': agentSteps,
  conductor,
  explore,
  journal,
  'tape-size': tapeSize,
  replay,
  // The last: what it leaves to be written back disturbs what comes after it.
  worktrees,
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** Writes RESULTS.md. */
    write: { type: 'boolean', default: false },
    /** Ends with 1 if a target is missed. */
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
const needsPeer = names.some(name => name === 'sequence' || name === 'fan-out');
const { missing } = needsPeer ? preparePeer() : {};
const lines = [];
const print = text => {
  lines.push(text, '');
  console.log(`${text}\n`);
};

print(
  `# Benchmark\n\n\`${['node bench/run.mjs', ...process.argv.slice(2)].join(' ')}\`, ${new Date().toISOString().slice(0, 10)}`,
);
print(machine());
print(
  'Everything is durable: write-ahead log, `synchronous=FULL`, one fsync a commit. Contenders take turns in fresh processes, and the median of the rounds counts. Times depend on the disk and on what else the machine does; ratios of one run depend on them much less.',
);
if (missing) print(`**Without a peer.** ${missing}`);
const targets = [];
for (const name of names) {
  const result = cases[name]({ peer: needsPeer && !missing, rounds: Number(values.rounds) });
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
