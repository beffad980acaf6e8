export interface Change {
  /** Below `src/`. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export interface Mutation {
  readonly name: string;
  readonly breaks: string;
  readonly changes: readonly Change[];
}

const acknowledgement = `for (const message of messages)
      if (message.kind === 'noted') await effects.acknowledge({ runId, receipt: message.receipt });
`;

/**
 * Mistakes that recorded cases have to notice. Each is a change of the source, found by its text; `breaks` says what the
 * product would do wrong. One that no case notices is a hole in the cases, or in what tapes compare.
 */
export const mutations: readonly Mutation[] = [
  {
    name: 'no worktree lock',
    breaks: 'two runs make worktrees at the same time',
    changes: [unlocked('worktrees')],
  },
  {
    name: 'no land lock',
    breaks: 'two runs land at the same time',
    changes: [unlocked('land')],
  },
  {
    name: 'no compare-and-swap on a branch',
    breaks: 'a landing overwrites what came onto a branch that is checked out nowhere',
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
    breaks: 'a landing overwrites what came onto the branch that is checked out',
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
    name: 'another expected sequence',
    breaks: 'the engine appends behind an event that it does not know',
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
    name: 'another worktree path',
    breaks: 'workspaces are made in another folder than the one that history names',
    changes: [
      {
        file: 'git/workspace/create.ts',
        find: 'const fresh = await addWorktree({ repository, path, label,',
        replace: 'const fresh = await addWorktree({ repository, path: `${path}-2`, label,',
      },
    ],
  },
  {
    name: 'another name of workspaces',
    breaks: 'workspaces of runs before an update are not found again',
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
    breaks: 'a step is told that its note is durable before it is',
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
    name: 'noted after it was done',
    breaks: 'a crash while a landing is under way leaves no trace of it',
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
    name: 'landing goes on after a conflict',
    breaks: 'the work of later workers lands although that of an earlier one did not',
    changes: [
      {
        file: 'engine/step/landing.ts',
        find: "if ('kind' in ended) return failedWith(landingError(ended, { ...source, runId, before: landings }));",
        replace: "if ('kind' in ended) continue;",
      },
    ],
  },
  {
    name: 'work is saved without a commit',
    breaks: 'what an agent did is not on its branch',
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
    name: 'another prompt',
    breaks: 'agents are told something else than the step says',
    changes: [
      {
        file: 'engine/step/agent/prompts.ts',
        find: '? prompt\n    : `${prompt}',
        replace: '? `${prompt} Please.`\n    : `${prompt}',
      },
    ],
  },
  {
    name: 'fail-fast does not cancel',
    breaks: 'steps go on, and cost money, beside one that has failed',
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
    breaks: 'a step that failed is tried again at once',
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
    breaks: 'of two steps that end at the same moment the engine hears of one',
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
    breaks: 'two workers pick a task at the same time, and do not see what the other has taken',
    changes: [
      {
        file: 'worker/steps/dispatch.ts',
        find: 'await effects.takeSlot({ key, agent: dispatcher, places, lease });',
        replace: '',
      },
    ],
  },
  {
    name: 'a claim for everybody',
    breaks: 'a task that somebody holds is given to another worker too',
    changes: [
      {
        file: 'store/claims.ts',
        find: 'if (current && (current.token !== seen || isHeld(current))) {',
        replace: 'if (false) {',
      },
      {
        file: 'worker/tasks/status.ts',
        find: "if (claim && isHeld(claim)) return { word: 'held', text: `held by ${claim.by}` };",
        replace: '',
      },
    ],
  },
  {
    name: 'the fencing token is ignored',
    breaks: 'a worker lands a task that was taken from it',
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
    breaks: 'what lands between dispatch and sleep does not wake the worker',
    changes: [
      {
        file: 'worker/worker.ts',
        find: "const woke = await this.#sleep(tried.kind === 'nothing' ? tried.seen : (found ?? unfinished).seen);",
        replace: 'const woke = await this.#sleep((await this.#look()).seen);',
      },
    ],
  },
  {
    name: 'nothing is parked',
    breaks: 'work that does not land is on no branch that anybody finds',
    changes: [
      {
        file: 'worker/effects/delivery.ts',
        find: 'parkOnBranch({ repository: await repository(), commit, name: task }),',
        replace: "'reprise/parked/' + task + commit.slice(0, 0),",
      },
    ],
  },
];

/** The lock is not taken; whoever asked for it goes on all the same. */
function unlocked(name: string): Change {
  return {
    file: 'git/lock.ts',
    find: 'const leave = await localQueue.enter(folder, signal);',
    replace: `if (name === '${name}') {
    const token = readLock(folder).token + 1;
    const isHeld = () => holdsToken(folder, { token, owner });
    return { token, repository, isHeld, release: () => {}, leave: () => {} };
  }
  const leave = await localQueue.enter(folder, signal);`,
  };
}
