import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findCases } from '../../src/cases/manifest/find.ts';
import { readCase } from '../../src/cases/manifest/load.ts';
import { replayCase } from '../../src/cases/replay/replay.ts';
import { runProgram } from '../../src/cli/program.ts';
import { parseScore } from '../../src/effects/recording/score-file.ts';

// `<case> <fidelity> <times>`: replays a recorded case repeatedly in one process.
const [path, fidelity, times] = process.argv.slice(2);
const reprise = fileURLToPath(new URL('../..', import.meta.url));
const project = mkdtempSync(join(tmpdir(), 'reprise-bench-'));
cpSync(join(reprise, 'cases', path), join(project, 'cases', path), { recursive: true });
const [found] = findCases({ cwd: project }).cases;
writeFileSync(found.file, `fidelity = "${fidelity}"\n${readFileSync(found.file, 'utf8')}`);
const context = {
  program: runProgram,
  env: process.env,
  cwd: project,
  version: '0.0.0',
  packages: { installed: undefined, reprise },
};
const manifest = readCase(found);
const score = readFileSync(join(found.folder, `${found.name}.score`), 'utf8');
const entries = parseScore({ file: found.name, text: score }).entries.length;
const taken = [];
for (let round = 0; round < Number(times); round++) {
  const before = performance.now();
  const { failures } = await replayCase(found, manifest, context);
  taken.push(performance.now() - before);
  if (failures.length > 0) throw new Error(`${path} does not replay: ${failures[0].message}`);
}
rmSync(project, { recursive: true });
const inOrder = taken.toSorted((a, b) => a - b);
process.stdout.write(
  `${JSON.stringify({ entries, ms: inOrder[Math.floor(inOrder.length / 2)], firstMs: taken[0] })}\n`,
);
