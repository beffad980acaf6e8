import { openEngine } from '../../src/index.ts';
import { chain } from './workflows.ts';

// `<steps> <folder> <run>`: time of a resume from the start of the process, including imports.
const [steps, root, runId] = process.argv.slice(2);
const importedMs = performance.now();
const workflow = chain(Number(steps));
const definedMs = performance.now();
const { engine, close } = await openEngine({ root, env: {} });
const result = await engine.resume({ workflow, runId });
const resumedMs = performance.now();
await close();
if (result.status !== 'completed') throw new Error(`the run ended ${JSON.stringify(result)}`);
process.stdout.write(
  `${JSON.stringify({ importMs: importedMs, defineMs: definedMs - importedMs, resumeMs: resumedMs - definedMs, totalMs: resumedMs })}\n`,
);
