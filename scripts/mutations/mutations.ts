export interface Change {
  /** Path below `src/`. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export interface Mutation {
  readonly name: string;
  /** Wrong behavior that the mutation causes. */
  readonly breaks: string;
  readonly changes: readonly Change[];
}

const acknowledgement = `for (const message of messages)
      if (message.kind === 'noted') await effects.acknowledge({ runId, receipt: message.receipt });
`;

/**
 * Mistakes that recorded cases must catch. Each is a change of the source, found by its text. A mutation that no case
 * catches shows a gap in the cases, or in the comparison with their tapes.
 */
export const mutations: readonly Mutation[] = [
  {
    name: 'no worktree lock',
    breaks: 'two runs create worktrees at the same time',
    changes: [unlocked('worktrees')],
  },
  {
    name: 'no land lock',
    breaks: 'two runs land at the same time',
    changes: [unlocked('land')],
  },
  {
    name: 'no compare-and-swap on a branch',
    breaks: 'a landing overwrites new commits of a branch that is not checked out',
    changes: [
      {
        file: 'git/landing/move-branch.ts',
        find: "if (tip !== from) return { kind: 'lost' };",
        replace: "if (tip === undefined) return { kind: 'lost' };",
      },
      {
        file: 'git/landing/move-branch.ts',
        find: "'reprise: land', ref, to, from]",
        replace: "'reprise: land', ref, to]",
      },
    ],
  },
  {
    name: 'no compare-and-swap on main',
    breaks: 'a landing overwrites new commits of the branch that is checked out',
    changes: [
      {
        file: 'git/landing/move-branch.ts',
        find: "if (tip !== from) return { kind: 'lost' };",
        replace: "if (tip === undefined) return { kind: 'lost' };",
      },
      {
        file: 'git/landing/move-branch.ts',
        find: "['merge', '--ff-only', '--no-overwrite-ignore', '--no-autostash', '--no-stat', '--quiet', to]",
        replace: "['reset', '--hard', '--quiet', to]",
      },
    ],
  },
  {
    name: 'wrong expected sequence',
    breaks: 'the engine appends after an event that it has not read',
    changes: [
      {
        file: 'engine/run/run-loop.ts',
        find: 'const expectedSeq = state.lastSeq;',
        replace: 'const expectedSeq = state.lastSeq + 1;',
      },
    ],
  },
  {
    name: 'unchecked sequence',
    breaks: 'the store lets two writers interleave their events',
    changes: [
      {
        file: 'store/runs.ts',
        find: 'if (leaseState.lastSeq === batch.expectedSeq) return;',
        replace: 'if (leaseState.lastSeq >= 0) return;',
      },
    ],
  },
  {
    name: 'wrong worktree path',
    breaks: 'workspaces are created in a different folder than the history names',
    changes: [
      {
        file: 'git/workspace/create.ts',
        find: "const worktree = { ...request, label, hooks: 'run' } as const;",
        replace: "const worktree = { ...request, path: `${request.path}-2`, label, hooks: 'run' } as const;",
      },
    ],
  },
  {
    name: 'renamed workspaces',
    breaks: 'workspaces of runs from an earlier version are not found',
    changes: [
      {
        file: 'git/names.ts',
        find: 'string => join(folder, ...segments(name));',
        replace: 'string => join(folder, segments(name).join("-"));',
      },
    ],
  },
  {
    name: 'two effects swapped',
    breaks: 'a step is told that its event is durable before it is',
    changes: [
      {
        file: 'engine/run/run-loop.ts',
        find: acknowledgement,
        replace: '',
      },
      {
        file: 'engine/run/run-loop.ts',
        find: 'if (batch.length > 0 || consumed.length > 0) {',
        replace: `${acknowledgement}    if (batch.length > 0 || consumed.length > 0) {`,
      },
    ],
  },
  {
    name: 'landing recorded too late',
    breaks: 'a crash during a landing leaves no trace of it',
    changes: [
      {
        file: 'engine/step/landing.ts',
        find: "await lane.record({ type: 'landing.started', data: { onto, branch } });\n",
        replace: '',
      },
      {
        file: 'engine/step/landing.ts',
        find: 'const ended = isRefused(landing)',
        replace:
          "await lane.record({ type: 'landing.started', data: { onto, branch } });\n    const ended = isRefused(landing)",
      },
    ],
  },
  {
    name: 'landing continues after a conflict',
    breaks: 'the work of later copies lands although the work of an earlier one did not',
    changes: [
      {
        file: 'engine/step/landing.ts',
        find: "if ('kind' in ended) return failedWith(landingError(ended, { ...source, runId, before: landings }));",
        replace: "if ('kind' in ended) continue;",
      },
    ],
  },
  {
    name: 'no commit of the work',
    breaks: 'the changes of an agent are not on its branch',
    changes: [
      {
        file: 'git/workspace/save.ts',
        find: 'const committed = await commitAll(',
        replace:
          "const leave = async () => ({ kind: 'clean', commit: base, branch });\n  const committed = await leave(",
      },
    ],
  },
  {
    name: 'changed prompt',
    breaks: 'agents get a prompt that differs from the step',
    changes: [
      {
        file: 'engine/step/agent/conversation.ts',
        find: '? prompt\n    : `${prompt}',
        replace: '? `${prompt} Please.`\n    : `${prompt}',
      },
    ],
  },
  {
    name: 'fail-fast does not cancel',
    breaks: 'steps keep running, and cost money, after another step has failed',
    changes: [
      {
        file: 'engine/state/ready-queues.ts',
        find: 'else this.toCancel.push(state);',
        replace: 'else state;',
      },
    ],
  },
  {
    name: 'no delay before a retry',
    breaks: 'a failed step is retried immediately',
    changes: [
      {
        file: 'engine/run/messages.ts',
        find: 'due.push({ timer, at: toEpochMs(setAt) + ms });',
        replace: 'due.push({ timer, at: toEpochMs(setAt) });',
      },
    ],
  },
  {
    name: 'the mailbox loses a message',
    breaks: 'the engine receives only one of two steps that end at the same moment',
    changes: [
      {
        file: 'effects/world.ts',
        find: 'waiting.push(message);',
        replace: 'waiting = [message];',
      },
    ],
  },
  {
    name: 'no dispatch lock',
    breaks: 'two workers pick a task at the same time, without seeing the choice of the other',
    changes: [
      {
        file: 'worker/steps/dispatch.ts',
        find: 'await effects.takeSlot({ key, agent: dispatcher, ...wait });',
        replace: '',
      },
    ],
  },
  {
    name: 'claim of a held task',
    breaks: 'a task that one worker holds is given to a second worker',
    changes: [
      {
        file: 'store/claims.ts',
        find: 'if (current && (current.token !== seen || isHeld(current))) {',
        replace: 'if (false) {',
      },
      {
        file: 'worker/tasks/status.ts',
        find: 'if (claim && isHeld(claim)) {',
        replace: 'if (claim && false) {',
      },
    ],
  },
  {
    name: 'the fencing token is ignored',
    breaks: 'a worker lands a task that another worker has taken over',
    changes: [
      {
        file: 'engine/step/landing-effects.ts',
        find: '(claim === undefined || (await store.claims.isHeld({ ...claim, runId })));',
        replace: '(claim === undefined || true);',
      },
    ],
  },
  {
    name: 'the wake-up baseline is taken late',
    breaks: 'a landing between dispatch and sleep does not wake the worker',
    changes: [
      {
        file: 'worker/worker.ts',
        find: "const woke = await this.#sleep(tried.kind === 'nothing' ? tried.seen : (found ?? latest).seen);",
        replace: 'const woke = await this.#sleep((await this.#look()).seen);',
      },
    ],
  },
  {
    name: 'nothing is parked',
    breaks: 'work that cannot land is not kept on a branch',
    changes: [
      {
        file: 'worker/effects/delivery.ts',
        find: 'parkOnBranch({ repository: await repository(), commit, name: task }),',
        replace: "'reprise/parked/' + task + commit.slice(0, 0),",
      },
    ],
  },
];

/** Returns a change that grants a lock without taking it. */
function unlocked(name: string): Change {
  return {
    file: 'git/lock.ts',
    find: 'const lock = await inTurn(folder, () => tryLock(folder, { owner }), {',
    replace: `if (name === '${name}')
    return { token: readLock(folder).token + 1, lost: neverLost, repository, isHeld: () => readLock(folder).kind === 'held', release: () => {} };
  const lock = await inTurn(folder, () => tryLock(folder, { owner }), {`,
  };
}
