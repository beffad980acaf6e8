import { spawnSync } from 'node:child_process';
import { contenderFile } from './build.ts';

/** The methods of every contender, by the name of its file. */
interface Contenders {
  readonly 'agent-steps': typeof import('../contenders/agent-steps.ts').methods;
  readonly bare: typeof import('../contenders/bare.ts').methods;
  readonly conductor: typeof import('../contenders/conductor.ts').methods;
  readonly explore: typeof import('../contenders/explore.ts').methods;
  readonly 'explore-cases': typeof import('../contenders/explore-cases.ts').methods;
  readonly floor: typeof import('../contenders/floor.ts').methods;
  readonly fold: typeof import('../contenders/fold.ts').methods;
  readonly journal: typeof import('../contenders/journal.ts').methods;
  readonly langgraph: typeof import('../contenders/langgraph.ts').methods;
  readonly replay: typeof import('../contenders/replay.ts').methods;
  readonly reprise: typeof import('../contenders/reprise.ts').methods;
  readonly resume: typeof import('../contenders/resume.ts').methods;
  readonly 'tape-size': typeof import('../contenders/tape-size.ts').methods;
  readonly worktrees: typeof import('../contenders/worktrees.ts').methods;
}

type Contender = keyof Contenders;
type MethodOf<Name extends Contender> = keyof Contenders[Name] & string;

type ArgumentsOf<Method> = Method extends (folder: string, ...args: infer Args) => unknown ? Args : never;
type ResultOf<Method> = Method extends (...args: never) => infer Result ? Awaited<Result> : never;

/** A call of a method, with the arguments that the method declares after its folder. */
type Call<Name extends Contender, Method extends MethodOf<Name>> = [
  contender: Name,
  method: Method,
  ...args: ArgumentsOf<Contenders[Name][Method]>,
];

/** Starts a process for one method of a contender, with the arguments as JSON. */
function runContender(node: string, [contender, ...words]: readonly [string, string, ...unknown[]]) {
  const [method, ...args] = words;
  const argv = [contenderFile(contender), method, ...args.map(value => JSON.stringify(value))];
  const ended = spawnSync(node, argv, { encoding: 'utf8', maxBuffer: 1 << 26 });
  const failure = (what: string) =>
    new Error(`${contender} ${words.join(' ')} ${what}:\n${ended.stderr || ended.stdout}`);
  return { ...ended, failure };
}

/** Runs one method of one contender in a fresh process and returns its measurements. */
export const inChild = <Name extends Contender, Method extends MethodOf<Name>>(
  ...call: Call<Name, Method>
): ResultOf<Contenders[Name][Method]> => inChildOf(process.execPath, ...call);

/** Like `inChild`, with another version of Node. */
export function inChildOf<Name extends Contender, Method extends MethodOf<Name>>(
  node: string,
  ...call: Call<Name, Method>
): ResultOf<Contenders[Name][Method]> {
  const { status, stdout, failure } = runContender(node, call);
  if (status !== 0) throw failure('failed');
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
}

/** Runs a method that kills its own process, and returns its measurements. */
export function killedChild<Name extends Contender, Method extends MethodOf<Name>>(
  ...call: Call<Name, Method>
): ResultOf<Contenders[Name][Method]> {
  const { signal, stdout, failure } = runContender(process.execPath, call);
  if (signal !== 'SIGKILL') throw failure('was not killed');
  return JSON.parse(stdout);
}

/** Wall time of a process that runs this code, in milliseconds. */
export function wallMs(args: readonly string[]): number {
  const before = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`node ${args.join(' ')} failed:\n${stderr}`);
  return performance.now() - before;
}
