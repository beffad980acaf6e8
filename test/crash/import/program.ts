import { importStates } from '../../../src/project/import-state.ts';
import { locateState } from '../../../src/project/state.ts';

/** Imports the old state of a repository and kills itself at a step. Usage: <root> <number of the step, 0 for never> */
const [root = '', killAt = '0'] = process.argv.slice(2);
let step = 0;
const { folder } = locateState({ root, env: process.env });
await importStates({
  folder,
  root,
  env: process.env,
  reached: () => {
    if (++step === Number(killAt)) process.kill(process.pid, 'SIGKILL');
  },
});
