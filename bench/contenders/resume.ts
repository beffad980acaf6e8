import { openEngine } from '../../src/index.ts';
import { contend } from '../lib/contend.ts';
import { chain } from './workflows.ts';

const importMs = performance.now();

export const methods = {
  /** Time of a resume from the start of the process, including imports. */
  async resume(_folder: string, steps: number, root: string, runId: string) {
    const workflow = chain(steps);
    const definedMs = performance.now();
    const { engine, close } = await openEngine({ root, env: {} });
    const result = await engine.resume({ workflow, runId });
    const totalMs = performance.now();
    await close();
    if (result.status !== 'completed') throw new Error(`the run ended ${JSON.stringify(result)}`);
    return { importMs, defineMs: definedMs - importMs, resumeMs: totalMs - definedMs, totalMs };
  },
};

await contend(methods);
