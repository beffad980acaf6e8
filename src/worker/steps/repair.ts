import { RepriseError, toTimestamp } from '../../core/index.ts';
import type { StepEnd } from '../../engine/index.ts';
import { type AgentMessage, Conversation, checkPrompt, SessionCount } from '../../engine/step/agent/index.ts';
import type { KnownSession, WorkLane } from '../../engine/step/index.ts';
import type { Resolution } from '../../git/conflict/index.ts';
import type { LandingRefused } from '../../git/landing/index.ts';
import type { Fence } from '../../store/index.ts';
import type { Dispatch, WorkerHandle } from '../contract.ts';
import { conflictPrompt, correctionPrompt, howToEnd, workPrompt } from '../prompts.ts';
import { colleaguesOf, takersOf } from '../tasks/read.ts';
import { type AgentAnswer, askUntilValid } from './dispatch.ts';

/** A task with its finished work. */
export type FinishedTask = Extract<Dispatch, { agent: string }> & {
  readonly work: {
    /** Absolute path of the workspace. */
    readonly path: string;
    readonly branch: string;
    readonly base: string;
    readonly commit: string;
    /** Session of the last agent. */
    readonly session?: KnownSession | undefined;
    readonly env: Readonly<Record<string, string>>;
  };
};

export type RepairResult =
  /** The landing may be retried. */
  | { readonly kind: 'repaired' }
  /** `commit`: the commit of the work, if its branch no longer contains it. */
  | { readonly kind: 'not-repaired'; readonly why: string; readonly commit?: string }
  | { readonly kind: 'ended'; readonly end: StepEnd };

type ConflictRefusal = Extract<LandingRefused, { kind: 'conflict' }>;
type VerifyFailed = Extract<LandingRefused, { kind: 'verify-failed' }>;

/** Sends the reason why a landing was refused to the agent that worked on the task last, and applies its repair. */
export class LandingRepair {
  readonly #worker: WorkerHandle;
  readonly #lane: WorkLane;
  readonly #finished: FinishedTask;
  readonly #agent: string;
  readonly #conversation: Conversation;
  #session: KnownSession | undefined;

  constructor(worker: WorkerHandle, lane: WorkLane, finished: FinishedTask) {
    const { task, args, work } = finished;
    const { path, base, env, session } = work;
    this.#worker = worker;
    this.#lane = lane;
    this.#finished = finished;
    this.#agent = session?.agent ?? finished.agent;
    this.#session = lane.known.session ?? session;
    this.#conversation = new Conversation(lane, {
      location: { folder: path, env, isReadonly: false, workspace: { base } },
      count: new SessionCount(lane),
      agent: this.#agent,
      prompt: workPrompt({
        task,
        args,
        agent: this.#agent,
      }),
      ending: howToEnd(colleaguesOf(lane.effects.agents, this.#agent), this.#agent),
      env: { REPRISE_TASK: task.id },
    });
  }

  canRepair({ kind }: LandingRefused): boolean {
    return kind === 'conflict' || kind === 'verify-failed' || kind === 'lost-the-race';
  }

  async repair(refused: LandingRefused): Promise<RepairResult> {
    const { task } = this.#finished;
    await this.#worker.show({
      state: 'landing',
      runId: this.#lane.runId,
      task: task.id,
      agent: this.#agent,
      note: refused.why,
    });
    if (refused.kind === 'conflict') return this.#solve(refused);
    if (refused.kind === 'verify-failed') return this.#repair(refused);
    return { kind: 'repaired' };
  }

  get #fence(): Fence {
    const { runId, lease } = this.#lane;
    return { runId, lease };
  }

  async #solve(conflict: ConflictRefusal): Promise<RepairResult> {
    const { effects, rules } = this.#worker;
    const fence = this.#fence;
    const { path, branch } = this.#finished.work;
    const begun = await effects.beginSolving({
      fence,
      path,
      branch,
      onto: conflict.onto,
      ontoName: rules.branch,
    });
    if (begun.kind === 'fits') return { kind: 'repaired' };
    let { resolution } = begun;
    try {
      let message = this.#again(this.#conflictMessage(resolution));
      for (let left = rules.corrections; ; ) {
        const answer = await this.#ask(message);
        // A suspended session continues with the conflict as it left it.
        if (answer.kind === 'ended' && answer.end.kind === 'suspended') return answer;
        if (answer.kind === 'ended') return await this.#stop(resolution, answer);
        if (answer.next.kind === 'give-up')
          return await this.#stop(resolution, {
            kind: 'not-repaired',
            why: gaveUp(this.#agent, answer.next.reason),
          });
        const at = toTimestamp(await effects.now());
        const taken = await effects.continueSolving({ fence, path, resolution, at });
        switch (taken.kind) {
          case 'resolved':
            if (taken.dropped.length === 0) return { kind: 'repaired' };
            return { kind: 'not-repaired', why: nothingLeft(taken.dropped), commit: resolution.tip };
          case 'refused':
            return await this.#stop(resolution, { kind: 'not-repaired', why: taken.why });
          case 'conflict':
            resolution = taken.resolution;
            message = this.#again(this.#conflictMessage(resolution));
            break;
          case 'unsolved':
            if (left-- <= 0) return await this.#stop(resolution, { kind: 'not-repaired', why: taken.why });
            message = this.#again(correctionPrompt(taken.why, this.#conflictMessage(resolution)));
        }
      }
    } catch (thrown) {
      const isSuspended = isCancelled(thrown) && (await this.#lane.effects.isSuspending(this.#lane));
      if (!isSuspended) await this.#stop(resolution, { kind: 'not-repaired', why: '' }).catch(() => {});
      throw thrown;
    }
  }

  async #stop(resolution: Resolution, repaired: RepairResult): Promise<RepairResult> {
    const { path } = this.#finished.work;
    await this.#worker.effects.stopSolving({ fence: this.#fence, path, resolution });
    return repaired;
  }

  /** Verification of the rebased work failed: shows the output to the agent and commits its fix. */
  async #repair({ output }: VerifyFailed): Promise<RepairResult> {
    const { rules, effects } = this.#worker;
    const { task, work } = this.#finished;
    const { path, branch, base } = work;
    const news = checkPrompt({ text: rules.verify ?? '', tail: output });
    const answer = await this.#ask(this.#again(news));
    if (answer.kind === 'ended') return answer;
    if (answer.next.kind === 'give-up')
      return { kind: 'not-repaired', why: gaveUp(this.#agent, answer.next.reason) };
    const at = toTimestamp(await effects.now());
    const message = `Fix verification failures\n\nTask: ${task.id}\n`;
    const fence = this.#fence;
    const saved = await this.#lane.effects.saveWork({ path, branch, base, message, at, fence });
    await this.#lane.record({ type: 'workspace.saved', data: saved });
    return { kind: 'repaired' };
  }

  #ask(first: AgentMessage): Promise<AgentAnswer> {
    const { agents } = this.#lane.effects;
    return askUntilValid(this.#conversation, {
      first,
      corrections: this.#worker.rules.corrections,
      rules: { agents: takersOf(agents), role: 'worker' },
    });
  }

  #again(news: string): AgentMessage {
    return this.#conversation.again(this.#session, news);
  }

  #conflictMessage({ files, subject }: Resolution): string {
    const noted = files.map(({ path, words }) => ({ path, note: words }));
    return conflictPrompt({ files: noted, subject, onto: this.#worker.rules.branch });
  }
}

const isCancelled = (thrown: unknown): boolean =>
  thrown instanceof RepriseError && thrown.code === 'CANCELLED';

const nothingLeft = (subjects: readonly string[]): string =>
  `the resolution of the conflicts left nothing of ${subjects.map(each => JSON.stringify(each)).join(', ')}`;

const gaveUp = (agent: string, reason: string): string => `${agent} could not fix it: ${reason}`;
