import { existsSync } from 'node:fs';
import { RepriseError } from '../core/errors.ts';
import { toTimestamp } from '../core/time.ts';
import { writeLines } from '../project/host.ts';
import { userName } from '../project/identity.ts';
import { openStore, storeFile } from '../project/open-engine.ts';
import { excludeFromGit, type Project } from '../project/project.ts';
import { openStoredRuns, type StoreMode } from '../project/runs.ts';
import { type Claim, isHeld } from '../store/claims.ts';
import type { EventStore } from '../store/port.ts';
import type { TaskFacts } from '../terminal/status/facts.ts';
import { shellWord } from '../terminal/words.ts';
import { safeLine } from '../view/safe-text.ts';
import type { TaskStanding } from '../worker/tasks/status.ts';
import type { TaskPlace } from './task-board.ts';

/** Opens the store for as long as `work` takes; there may be none. */
export async function withStore<T>(
  { project }: TaskPlace,
  mode: StoreMode,
  work: (store: EventStore | undefined) => Promise<T>,
): Promise<T> {
  const store = await openStoredRuns(project, mode);
  try {
    return await work(store);
  } finally {
    await store?.close();
  }
}

interface ClaimCommand {
  readonly place: TaskPlace;
  readonly task: TaskStanding;
  readonly by: string | undefined;
}

/** A person takes the task, so that no worker does. Throws TASK_HELD, and USAGE if the task cannot be understood. */
export async function claimTask({ place, task: { id, task, standing }, by }: ClaimCommand): Promise<void> {
  const { io, project } = place;
  const who = by ?? userName(io) ?? 'somebody';
  if (!task)
    throw new RepriseError('USAGE', `${id} cannot be taken: ${standing.text}`, {
      hint: `see what is wrong: reprise tasks show ${shellWord(id)}`,
    });
  const store = await storeToWrite(place);
  try {
    for (;;) {
      const seen = (await store.claims.list()).find(claim => claim.task === id)?.token ?? 0;
      const { version } = task;
      const at = toTimestamp(io.now());
      const { kind, claim } = await store.claims.take({ task: id, version, seen, runId: null, by: who, at });
      if (kind === 'taken' && !isHeld(claim)) continue;
      if (kind === 'taken' && !(claim.runId === null && claim.by === who)) throw held(claim);
      const already = kind === 'taken' ? ' already' : '';
      const back = `reprise tasks release ${shellWord(id)}${project.commandSuffix}`;
      writeLines(
        io.err,
        `${safeLine(`${who} has ${id}${already}`)}; no worker takes it. To give it back: ${back}`,
      );
      return;
    }
  } finally {
    await store.close();
  }
}

async function storeToWrite({ project }: TaskPlace): Promise<EventStore> {
  const { stateDir, host, root } = project;
  const given = await host?.openStore?.(stateDir, { readonly: false });
  if (given) return given;
  if (!existsSync(storeFile(stateDir))) excludeFromGit(root);
  return openStore(stateDir);
}

const held = ({ task, by, runId, at }: Claim): RepriseError =>
  new RepriseError('TASK_HELD', `${by} has ${task} since ${at}${runId === null ? '' : `, in run ${runId}`}`, {
    hint: `to take it away: reprise tasks release ${shellWord(task)}`,
  });

/** Whatever became of the task counts no more, and whoever has it has it no longer. */
export async function releaseTask({
  place,
  task: { id, claim, standing },
  by,
  look,
}: ClaimCommand & { readonly look: (store: EventStore | undefined) => Promise<TaskFacts> }): Promise<void> {
  const { io } = place;
  const say = (text: string) => writeLines(io.err, safeLine(text));
  if (!claim || claim.state === 'released') {
    say(`nobody has ${id}, so there is nothing to give back; it is ${standing.text}`);
    return;
  }
  const who = by ?? userName(io);
  const reason = `released${who ? ` by ${who}` : ''}`;
  const after = await withStore(place, 'writable', async store => {
    await store?.claims.settle({ task: id, state: 'released', at: toTimestamp(io.now()), reason });
    return look(store);
  });
  for (const line of lossOf(claim, place.project)) say(line);
  say(`${id} is given back: ${outlookOf(after.tasks.find(each => each.id === id))}`);
}

/** What whoever had it has to know. */
function lossOf(claim: Claim, { commandSuffix }: Project): readonly string[] {
  const { by, runId, task } = claim;
  if (!isHeld(claim)) return [];
  if (runId === null) return [`${by} had it`];
  return [
    `${by} is at work on ${task} and can no longer land it: its claim does not count any more`,
    `to stop it now: reprise cancel ${runId}${commandSuffix}`,
  ];
}

function outlookOf(after: TaskStanding | undefined): string {
  if (!after) return 'its text is gone from the branch, so nobody takes it';
  const { standing, task } = after;
  if (standing.word === 'ready') return `a worker may take it now, with the agent ${standing.agent.name}`;
  if (standing.word === 'done' && task?.file !== undefined)
    return `but its file says \`state: done\`; to have it done again, write \`state: ready\` in ${task.file} and commit it`;
  return `it is ${standing.text}`;
}
