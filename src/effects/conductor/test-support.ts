import type { RepriseError } from '../../core/errors.ts';
import { createLiveWorld } from '../live-world.ts';
import type { Recording } from '../recording/recording.ts';
import { type ReplaySchedulerOptions, replayScheduler } from '../schedulers/replay.ts';
import { createRecorder } from '../tracer.ts';
import type { World } from '../world.ts';
import { createConductedWorld } from './conductor.ts';

/** Creates root lanes by name, with their shared state. Called once per world. */
export type Program = (world: World) => Readonly<Record<string, () => Promise<unknown>>>;

export interface Performed {
  readonly recording: Recording;
  /** Result of each root lane, or `CODE: message` of its error. */
  readonly ends: Readonly<Record<string, unknown>>;
}

export async function record(program: Program): Promise<Performed> {
  const { tracer, recording } = createRecorder();
  const world = createLiveWorld({ tracer });
  const ends = await openAll(world, program);
  return { recording: asFromFiles(recording()), ends };
}

export interface ReplayOptions extends Partial<ReplaySchedulerOptions> {
  readonly recording: Recording;
  readonly pace?: 'turn' | 'microtask';
  /** Opens the root lanes. Defaults to all at the same time. */
  readonly open?: (world: World, program: Program) => Promise<Performed['ends']>;
}

/** Replays a recording. Throws the error that stops the replay. */
export async function replay(
  program: Program,
  { recording, pace = 'turn', open = openAll, ...options }: ReplayOptions,
): Promise<Performed> {
  const recorder = createRecorder();
  const scheduler = replayScheduler({
    recording,
    fidelity: 'sessions',
    normalise: value => value,
    expand: value => value,
    ...options,
  });
  const world = createConductedWorld({ scheduler, pace, tracer: recorder.tracer });
  const ends = await Promise.race([
    open(world, program),
    world.stopped.then(error => {
      throw error;
    }),
  ]);
  await world.finish();
  return { recording: asFromFiles(recorder.recording()), ends };
}

export async function openAll(world: World, program: Program): Promise<Performed['ends']> {
  const lanes = Object.entries(program(world)).map(async ([name, body]) => [
    name,
    await end(world, name, body),
  ]);
  return Object.fromEntries(await Promise.all(lanes));
}

export async function openOneAfterAnother(world: World, program: Program): Promise<Performed['ends']> {
  const ends: Record<string, unknown> = {};
  for (const [name, body] of Object.entries(program(world))) ends[name] = await end(world, name, body);
  return ends;
}

const end = (world: World, name: string, body: () => Promise<unknown>): Promise<unknown> =>
  world.open(name, body).catch((error: RepriseError) => `${error.code}: ${error.message}`);

/** Reduces the recording to data, as if it had been read from files. */
const asFromFiles = (recording: Recording): Recording =>
  JSON.parse(JSON.stringify(recording, (key, value) => (key === 'stack' ? undefined : value)));

/** Returns the code and message of the rejection, with the hint on the next line. */
export async function complaint(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return 'no complaint';
  } catch (thrown) {
    const { code, message, hint } = thrown as RepriseError;
    return `${code}: ${message}${hint === undefined ? '' : `\n${hint}`}`;
  }
}
