import { AsyncResource } from 'node:async_hooks';
import { execFileSync, spawn } from 'node:child_process';
import { RepriseError } from '../../core/index.ts';
import type { AbandonableWorld, Tracer, World } from '../../effects/index.ts';
import { topLane } from '../../effects/recording/index.ts';
import { abandonIncarnation, readmitIncarnation } from '../../process/index.ts';
import { type CommandIo, exitCodeOfError, type Host, writeLines } from '../../project/index.ts';
import { formatError } from '../../terminal/index.ts';
import { groupsOf } from '../manifest/fields.ts';
import type { CaseManifest, CaseStep, Trigger } from '../manifest/manifest.ts';
import type { CaseClock } from './clock.ts';
import { isGitReal, type Watch, watchCase } from './failures.ts';
import type { Stage } from './stage.ts';
import { commandEffect, type StepIo, stepIo } from './step-io.ts';

/**
 * Suspends all lanes of a world while a killed command is restarted: an open top-level lane without a request counts
 * as running. Otherwise the other commands would get ahead of the killed one while it restarts.
 */
class HeldWorld {
  readonly #world: Pick<World, 'open'>;
  /** Async context outside of all lanes. A kill happens inside a lane, and `open` needs the top level. */
  readonly #outside = new AsyncResource('reprise.held-world');
  readonly #holds = new Map<string, () => void>();

  constructor(world: Pick<World, 'open'>) {
    this.#world = world;
  }

  hold(name: string): void {
    if (this.#holds.has(name)) return;
    const isOver = new Promise<void>(resolve => this.#holds.set(name, resolve));
    // The commands that run in the world report that it was stopped.
    this.#outside.runInAsyncScope(() => this.#world.open(`${name} is left`, () => isOver)).catch(() => {});
  }

  release(name: string): void {
    this.#holds.get(name)?.();
    this.#holds.delete(name);
  }
}

/**
 * Moves the target branch and its checkout, as a process outside of the case would. Synchronous, so that the effect that
 * fired the trigger already finds the branch moved. Throws GIT_FAILED.
 */
function moveMain({ stage, env }: Pick<PerformanceOptions, 'stage' | 'env'>, commit: string): void {
  try {
    execFileSync('git', ['reset', '--quiet', '--keep', commit], { cwd: stage.repo, env, stdio: 'pipe' });
  } catch (cause) {
    const reason = String((cause as { readonly stderr?: Buffer }).stderr ?? cause).trim();
    throw new RepriseError('GIT_FAILED', `\`move_main\` cannot move the branch to ${commit}: ${reason}`, {
      hint: 'the commit must exist in the test repository: in the pack of [base], or made by an earlier command',
      cause,
    });
  }
}

/** Runs a script of the case for real, in the test repository. Returns its exit code. */
function runScript({ script, io }: { readonly script: string; readonly io: CommandIo }): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn('bash', ['-e', '-o', 'pipefail', '-s'], {
      cwd: io.cwd,
      env: { ...io.env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    child.stdin.on('error', () => {}).end(script);
    child.stdout.setEncoding('utf8').on('data', (text: string) => io.out(text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => io.err(text));
    io.interrupt.addEventListener('abort', () => child.kill('SIGTERM'), { once: true });
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? (signal ? 143 : 1)));
  });
}

/** Runs a Reprise command line, as `main` does, and returns its exit code. */
export type Program = (args: readonly string[], io: CommandIo) => Promise<number>;

/** Result of a command of the case. */
export interface PlayedStep {
  readonly step: CaseStep;
  readonly output: string;
  readonly end:
    | { readonly kind: 'exited'; readonly code: number }
    | { readonly kind: 'killed' }
    | { readonly kind: 'timed-out'; readonly afterMs: number };
}

interface PerformanceOptions {
  readonly manifest: CaseManifest;
  readonly stage: Stage;
  readonly program: Program;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: CaseClock;
  readonly defaultTimeoutMs: number;
  /** Acts as Ctrl-C for every running command when aborted. */
  readonly interrupt?: AbortSignal | undefined;
  /** Called synchronously when a command is killed. */
  readonly onKill?: ((step: string) => void) | undefined;
  /** Returns the command that is started immediately after a kill. By default, none is. */
  readonly restart?: ((killed: CaseStep) => CaseStep | undefined) | undefined;
}

interface PlayWorld {
  readonly world: AbandonableWorld;
  readonly hostOf: (step: CaseStep) => Host;
  /** Called after the effects of a killed command have stopped, before its performance ends. */
  readonly onLeft: (step: string) => Promise<void>;
}

/** Performs the commands of a case: groups one after another, the commands of a group in parallel. */
export class CasePerformance {
  readonly #play: PerformanceOptions;
  readonly #watch: Watch;
  readonly #stepContexts = new Map<string, StepIo>();
  readonly #killed = new Map<string, (end: PlayedStep['end']) => void>();
  readonly #incarnations = new Map<string, string[]>();
  /** Cleanups of killed commands that the group must wait for. */
  readonly #leaving: Promise<void>[] = [];
  #onLeft: (step: string) => Promise<void> = async () => {};
  #world: AbandonableWorld | undefined;
  #held: HeldWorld | undefined;
  /** Error of a trigger action. */
  #fault: unknown;

  constructor(play: PerformanceOptions) {
    this.#play = play;
    this.#watch = watchCase({
      manifest: play.manifest,
      onTrigger: trigger => this.#fire(trigger),
      onKill: step => this.#kill(step, { kind: 'killed' }),
    });
  }

  /** Must be attached to the world in which the case is performed. */
  get tracer(): Tracer {
    const { tracer } = this.#watch;
    return {
      granted: tracer.granted,
      settled: (request, place, outcome) => {
        if (request.effect.name === 'ids.new' && outcome.kind === 'ok')
          this.#remember(topLane(request.lane.name), outcome.value as { readonly incarnation: string });
        tracer.settled(request, place, outcome);
      },
    };
  }

  get watch(): Watch {
    return this.#watch;
  }

  async play({ world, hostOf, onLeft }: PlayWorld): Promise<readonly PlayedStep[]> {
    this.#world = world;
    this.#held = this.#play.restart && new HeldWorld(world);
    this.#onLeft = onLeft;
    const played: PlayedStep[] = [];
    for (const group of groupsOf(this.#play.manifest)) {
      played.push(
        ...(await Promise.all(group.map(step => this.#playThrough(step, { world, hostOf })))).flat(),
      );
      await Promise.all(this.#leaving.splice(0));
    }
    if (this.#fault !== undefined) throw this.#fault;
    return played;
  }

  /** Simulates a SIGKILL of the command's process. */
  kill(step: string): void {
    this.#kill(step, { kind: 'killed' });
  }

  /** Names of the running commands. */
  alive(): readonly string[] {
    return [...this.#killed.keys()];
  }

  /** Ends the performance: releases everything that its incarnations hold, and allows another performance to reuse their ids. */
  forget(): void {
    for (const incarnations of this.#incarnations.values())
      for (const incarnation of incarnations) {
        abandonIncarnation(incarnation);
        readmitIncarnation(incarnation);
      }
  }

  async #playThrough(
    first: CaseStep,
    { world, hostOf }: Pick<PlayWorld, 'world' | 'hostOf'>,
  ): Promise<readonly PlayedStep[]> {
    const played: PlayedStep[] = [];
    for (let step: CaseStep | undefined = first, previous = first; step; ) {
      const playing = this.#playStep(step, { world, host: hostOf(step) });
      this.#held?.release(previous.name);
      const now: PlayedStep = await playing;
      played.push(now);
      const next: CaseStep | undefined = now.end.kind === 'killed' ? this.#play.restart?.(step) : undefined;
      if (next) this.#watch.adopt(next.name, step.name);
      else this.#held?.release(step.name);
      previous = step;
      step = next;
    }
    return played;
  }

  async #playStep(
    step: CaseStep,
    { world, host }: { readonly world: AbandonableWorld; readonly host: Host },
  ): Promise<PlayedStep> {
    const { manifest, stage, env, defaultTimeoutMs } = this.#play;
    const inputTriggers = manifest.triggers.filter(
      trigger => trigger.step === step.name && trigger.action.kind === 'input',
    ).length;
    const stepContext = stepIo({
      host,
      cwd: stage.repo,
      env: { ...env, ...manifest.env, ...step.env },
      stdin: step.stdin,
      inputTriggers,
    });
    this.#stepContexts.set(step.name, stepContext);
    const { interrupt } = this.#play;
    const stop = () => stepContext.stop('SIGINT');
    if (interrupt?.aborted) stop();
    interrupt?.addEventListener('abort', stop);
    const afterMs = step.timeoutMs ?? defaultTimeoutMs;
    const ended = new Promise<PlayedStep['end']>(resolve => {
      this.#killed.set(step.name, resolve);
    });
    const timeout = setTimeout(() => this.#kill(step.name, { kind: 'timed-out', afterMs }), afterMs);
    try {
      const exited = world
        .open(step.name, () => this.#execute(step, { world, stepContext }))
        .then((code): PlayedStep['end'] => ({ kind: 'exited', code: stepContext.exitCode(code) }));
      const end = await Promise.race([exited, ended]);
      return { step, output: stepContext.output(), end };
    } finally {
      this.#killed.delete(step.name);
      clearTimeout(timeout);
      interrupt?.removeEventListener('abort', stop);
    }
  }

  async #execute(
    step: CaseStep,
    { world, stepContext }: { readonly world: AbandonableWorld; readonly stepContext: StepIo },
  ): Promise<number> {
    const { io } = stepContext;
    try {
      if (step.script !== undefined)
        return await runScript({ script: this.#play.manifest.scripts[step.script] ?? '', io });
      const args = [step.command, ...step.args];
      return await commandEffect(world, step.command, this.#play.program)(args, io);
    } catch (error) {
      writeLines(io.err, formatError(error, { color: false }));
      return exitCodeOfError(error);
    }
  }

  #fire({ step, action }: Trigger): void {
    const stepContext = this.#stepContexts.get(step);
    switch (action.kind) {
      case 'exit':
        stepContext?.stop('exit');
        break;
      case 'signal':
        stepContext?.stop(action.signal);
        break;
      case 'input':
        stepContext?.type(action.text);
        break;
      case 'advance_clock':
        this.#play.clock.advance(action.ms);
        break;
      case 'move_main':
        if (isGitReal(this.#play.manifest)) this.#attempt(() => moveMain(this.#play, action.commit));
    }
  }

  /** Keeps an error for the end of the performance, because a tracer must not throw into the effect it observes. */
  #attempt(move: () => void): void {
    try {
      move();
    } catch (error) {
      this.#fault ??= error;
    }
  }

  #remember(step: string, { incarnation }: { readonly incarnation: string }): void {
    this.#incarnations.set(step, [...(this.#incarnations.get(step) ?? []), incarnation]);
  }

  #kill(step: string, end: PlayedStep['end']): void {
    this.#play.onKill?.(step);
    if (this.#killed.has(step)) this.#held?.hold(step);
    for (const incarnation of this.#incarnations.get(step) ?? []) abandonIncarnation(incarnation);
    const left = this.#world?.abandon(step) ?? Promise.resolve();
    const leave = left.then(() => this.#onLeft(step)).then(() => this.#killed.get(step)?.(end));
    this.#leaving.push(leave);
  }
}
