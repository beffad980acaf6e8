import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findCases } from '../../src/cases/manifest/find.ts';
import { readCase } from '../../src/cases/manifest/load.ts';
import { replayCase } from '../../src/cases/replay/replay.ts';
import { runProgram } from '../../src/cli/program.ts';
import { parseScore } from '../../src/effects/recording/score-file.ts';
import { contend } from '../lib/contend.ts';
import { median } from '../lib/stats.ts';

const reprise = fileURLToPath(new URL('../..', import.meta.url));

export const methods = {
  /** Replays a recorded case repeatedly in one process. */
  async replay(folder: string, path: string, fidelity: 'sessions' | 'tape', times: number) {
    cpSync(join(reprise, 'cases', path), join(folder, 'cases', path), { recursive: true });
    const [found] = findCases({ cwd: folder }).cases;
    if (!found) throw new Error(`no case ${path}`);
    writeFileSync(found.file, `fidelity = "${fidelity}"\n${readFileSync(found.file, 'utf8')}`);
    const context = {
      program: runProgram,
      env: process.env,
      cwd: folder,
      version: '0.0.0',
      packages: { installed: undefined, reprise },
    };
    const manifest = readCase(found);
    const score = readFileSync(join(found.folder, `${found.name}.score`), 'utf8');
    const entries = parseScore({ file: found.name, text: score }).entries.length;
    const taken: number[] = [];
    for (let round = 0; round < times; round++) {
      const before = performance.now();
      const [failure] = (await replayCase(found, manifest, context)).failures;
      taken.push(performance.now() - before);
      if (failure) throw new Error(`${path} does not replay: ${failure.message}`);
    }
    const [firstMs = 0] = taken;
    return { entries, ms: median(taken), firstMs };
  },
};

await contend(methods);
