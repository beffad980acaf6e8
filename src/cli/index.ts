export { testContext } from './other-commands.ts';
export { runProgram } from './program.ts';
