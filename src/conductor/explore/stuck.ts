import { RepriseError } from '../../core/errors.ts';
import type { Asked, Obstacle } from '../../effects/conductor/scheduler.ts';
import { Cut, type Verdict } from '../../effects/explore/schedule.ts';

/** Lanes that come to no end. */
export class Stuck extends RepriseError {
  readonly kind: 'deadlock' | 'livelock';

  constructor(kind: 'deadlock' | 'livelock', message: string) {
    super(kind === 'deadlock' ? 'DEADLOCK' : 'LIVELOCK', message);
    this.kind = kind;
  }
}

export interface Wait {
  readonly asked: Asked;
  readonly obstacle: Obstacle | undefined;
}

export const deadlock = (waits: readonly Wait[]): Stuck =>
  new Stuck('deadlock', `no lane can go on: ${waitingFor(waits)}`);

export const livelock = (done: string, waits: readonly Wait[]): Stuck =>
  new Stuck('livelock', `lanes go on without coming to an end (${done}): ${waitingFor(waits)}`);

/** Whoever only sleeps, to give signs of life, keeps nobody waiting. */
function waitingFor(waits: readonly Wait[]): string {
  const awake = waits.filter(({ asked }) => asked.effect.name !== 'clock.sleep');
  return (awake.length > 0 ? awake : waits).map(describeWait).join('; ');
}

function describeWait({ asked, obstacle }: Wait): string {
  const { lane, op } = asked;
  if (!obstacle) return `${lane.name} is at ${op}`;
  const what = `${lane.name} waits at ${op}`;
  return obstacle.kind === 'keys'
    ? `${what} (${obstacle.key} is held by ${obstacle.holders.join(', ')})`
    : what;
}

/** What an error that stopped a performance says about the schedule. */
export function verdictOf(error: unknown): Verdict {
  if (error instanceof Cut) return { kind: 'cut' };
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof Stuck) return { kind: 'failed', what: error.kind, message };
  return { kind: 'failed', what: error instanceof RepriseError ? error.code : 'error', message };
}
