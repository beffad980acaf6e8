import { toTimestamp } from '../../core/time.ts';
import type { StepEnd } from '../../engine/run/messages.ts';
import { type Message, SessionCount, Talks } from '../../engine/step/agent/conversation.ts';
import { checkPrompt } from '../../engine/step/agent/prompts.ts';
import type { KnownSession, WorkLane } from '../../engine/step/contract.ts';
import type { Resolution } from '../../git/conflict/progress.ts';
import type { LandingRefused } from '../../git/landing/landing.ts';
import type { Dispatch, Self } from '../contract.ts';
import { conflictPrompt, correctionPrompt, howToEnd, workPrompt } from '../prompts.ts';
import { colleaguesOf, takersOf } from '../tasks/read.ts';
import { type AgentAnswer, answerOf } from './ask-agent.ts';

/** A task whose agents are done with it. */
export type FinishedTask = Extract<Dispatch, { agent: string }> & {
  readonly work: {
    /** Of the workspace, absolute. */
    readonly path: string;
    readonly branch: string;
    readonly base: string;
    readonly commit: string;
    /** Who had the last word. */
    readonly session?: KnownSession | undefined;
    readonly env: Readonly<Record<string, string>>;
  };
};

export type Mended =
  /** It may be landed again. */
  | { readonly kind: 'mended' }
  /** `commit`: where the work is, if its branch has lost it. */
  | { readonly kind: 'not-mended'; readonly why: string; readonly commit?: string }
  | { readonly kind: 'ended'; readonly end: StepEnd };

type Conflict = Extract<LandingRefused, { kind: 'conflict' }>;
type VerifyFailed = Extract<LandingRefused, { kind: 'verify-failed' }>;

/** The agent that did the work of a task last: it is told what stands in the way of its landing. */
export class Owning {
  readonly #self: Self;
  readonly #lane: WorkLane;
  readonly #finished: FinishedTask;
  readonly #agent: string;
  readonly #talks: Talks;
  #session: KnownSession | undefined;

  constructor(self: Self, lane: WorkLane, finished: FinishedTask) {
    const { task, args, work } = finished;
    const { path, branch, base, env, session } = work;
    this.#self = self;
    this.#lane = lane;
    this.#finished = finished;
    this.#agent = session?.agent ?? finished.agent;
    this.#session = lane.known.session ?? session;
    this.#talks = new Talks(lane, {
      place: { folder: path, env, workspace: { path, branch, base, readonly: false } },
      count: new SessionCount(lane),
      agent: this.#agent,
      prompt: workPrompt({
        task,
        args,
        agent: this.#agent,
        others: colleaguesOf(lane.effects.agents, this.#agent),
      }),
      env: { REPRISE_TASK: task.id },
    });
  }

  canMend({ kind }: LandingRefused): boolean {
    return kind === 'conflict' || kind === 'verify-failed' || kind === 'lost-the-race';
  }

  async mend(refused: LandingRefused): Promise<Mended> {
    const { task } = this.#finished;
    await this.#self.show({
      state: 'landing',
      runId: this.#lane.runId,
      task: task.id,
      agent: this.#agent,
      note: refused.why,
    });
    if (refused.kind === 'conflict') return this.#solve(refused);
    if (refused.kind === 'verify-failed') return this.#repair(refused);
    return { kind: 'mended' };
  }

  async #solve(conflict: Conflict): Promise<Mended> {
    const { effects, rules } = this.#self;
    const { lease } = this.#lane;
    const { path, branch } = this.#finished.work;
    const begun = await effects.beginSolving({
      lease,
      path,
      branch,
      onto: conflict.onto,
      ontoName: rules.branch,
    });
    if (begun.kind === 'fits') return { kind: 'mended' };
    let { resolution } = begun;
    try {
      let message = this.#again(this.#toldOf(resolution));
      for (let left = rules.corrections; ; ) {
        const answer = await this.#ask(message);
        if (answer.kind === 'ended') return await this.#stop(resolution, answer);
        if (answer.next.kind === 'give-up')
          return await this.#stop(resolution, {
            kind: 'not-mended',
            why: gaveUp(this.#agent, answer.next.reason),
          });
        const at = toTimestamp(await effects.now());
        const taken = await effects.goOnSolving({ lease, path, resolution, at });
        switch (taken.kind) {
          case 'resolved':
            if (taken.dropped.length === 0) return { kind: 'mended' };
            return { kind: 'not-mended', why: nothingLeft(taken.dropped), commit: resolution.tip };
          case 'refused':
            return await this.#stop(resolution, { kind: 'not-mended', why: taken.why });
          case 'conflict':
            resolution = taken.resolution;
            message = this.#again(this.#toldOf(resolution));
            break;
          case 'unsolved':
            if (left-- <= 0) return await this.#stop(resolution, { kind: 'not-mended', why: taken.why });
            message = this.#again(`${correctionPrompt(taken.why, this.#toldOf(resolution))}`);
        }
      }
    } catch (thrown) {
      await this.#stop(resolution, { kind: 'not-mended', why: '' }).catch(() => {});
      throw thrown;
    }
  }

  async #stop(resolution: Resolution, mended: Mended): Promise<Mended> {
    const { path } = this.#finished.work;
    await this.#self.effects.stopSolving({ lease: this.#lane.lease, path, resolution });
    return mended;
  }

  /** What would be the branch does not pass: the agent is shown what was said. */
  async #repair({ output }: VerifyFailed): Promise<Mended> {
    const { rules, effects } = this.#self;
    const { task, work } = this.#finished;
    const { path, branch, base } = work;
    const news = checkPrompt({ text: rules.verify ?? '', tail: output });
    const answer = await this.#ask(this.#again(news));
    if (answer.kind === 'ended') return answer;
    if (answer.next.kind === 'give-up')
      return { kind: 'not-mended', why: gaveUp(this.#agent, answer.next.reason) };
    const at = toTimestamp(await effects.now());
    const message = `Mend what the verification found\n\nTask: ${task.id}\n`;
    const saved = await this.#lane.effects.saveWork({ path, branch, base, message, at });
    await this.#lane.record({ type: 'workspace.saved', data: saved });
    return { kind: 'mended' };
  }

  #ask(first: Message): Promise<AgentAnswer> {
    const { agents } = this.#lane.effects;
    return answerOf(this.#talks, {
      first,
      corrections: this.#self.rules.corrections,
      how: howToEnd(colleaguesOf(agents, this.#agent)),
      rules: { agents: takersOf(agents), role: 'worker' },
    });
  }

  #again(news: string): Message {
    return this.#talks.again(this.#session, news);
  }

  #toldOf({ files, subject }: Resolution): string {
    const noted = files.map(({ path, words }) => ({ path, note: words }));
    return conflictPrompt({ files: noted, subject, onto: this.#self.rules.branch });
  }
}

const nothingLeft = (subjects: readonly string[]): string =>
  `nothing is left of ${subjects.map(each => JSON.stringify(each)).join(', ')} after the conflicts were solved`;

const gaveUp = (agent: string, reason: string): string => `${agent} could not mend it: ${reason}`;
