import { join } from 'node:path';
import type { EventOf, HistoryEvent } from '../core/events.ts';
import type { Environment } from '../engine/environment.ts';
import { dispatcher } from './rules.ts';

/** What a run has left behind. */
export interface LeftWork {
  /** That it had, whoever has it now. */
  readonly task?: string | undefined;
  /** Of the claim, while it is held. */
  readonly token?: number | undefined;
  readonly workspace?: LeftWorkspace | undefined;
  /** Where it was parked already. */
  readonly parked?: string | undefined;
  /** Its process was told to stop, as far as that can be told from a person who cancels the run. */
  readonly wasStopped?: true | undefined;
  readonly costUsd: number | null;
  readonly tokens: number;
}

export interface LeftWorkspace {
  /** Absolute. */
  readonly path: string;
  readonly branch: string;
  /** The commit that it began with. */
  readonly base: string;
  /** Nobody has committed what was done in it: whoever would have was not at work on it when it ended. */
  readonly isUnsaved?: true | undefined;
}

/** From its history, and from the claims. */
export async function leftWorkOf(
  { store, projectRoot }: Pick<Environment, 'store' | 'projectRoot'>,
  runId: string,
): Promise<LeftWork> {
  const { place, ...left } = leftOf(await store.read(runId));
  const claim = (await store.claims.list()).find(each => each.runId === runId && each.state === 'held');
  return {
    ...left,
    ...(claim ? { task: claim.task, token: claim.token } : {}),
    ...(place ? { workspace: { ...place, path: join(projectRoot, place.path) } } : {}),
  };
}

const placeOf = ({ data: { path, branch, base } }: EventOf<'workspace.created'>): LeftWorkspace => ({
  path,
  branch,
  base,
});

type Left = Omit<LeftWork, 'token' | 'workspace'> & { readonly place?: LeftWorkspace };

function leftOf(history: readonly HistoryEvent[]): Left {
  let place: LeftWorkspace | undefined;
  let isUnsaved = false;
  let task: string | undefined;
  let parked: string | undefined;
  let wasStopped = false;
  let costUsd: number | null = 0;
  let tokens = 0;
  for (const event of history) {
    if (event.type === 'workspace.created') place = placeOf(event);
    else if (event.type === 'session.started' && event.step === 'work') isUnsaved = true;
    else if (event.type === 'workspace.saved') isUnsaved = false;
    else if (event.type === 'transition.taken' && event.data.from === dispatcher)
      task = event.data.args?.['task'];
    else if (event.type === 'landing.parked') parked = event.data.branch;
    else if (event.type === 'cancel.requested')
      wasStopped = event.data.by === undefined && event.data.error === undefined;
    else if (event.type === 'session.ended') {
      const { usage } = event.data;
      costUsd = usage.costUsd === null || costUsd === null ? null : costUsd + usage.costUsd;
      tokens += usage.inputTokens + usage.outputTokens;
    }
  }
  return {
    ...(place ? { place: { ...place, ...(isUnsaved ? { isUnsaved } : {}) } } : {}),
    ...(task === undefined ? {} : { task }),
    ...(parked === undefined ? {} : { parked }),
    ...(wasStopped ? { wasStopped } : {}),
    costUsd,
    tokens,
  };
}
