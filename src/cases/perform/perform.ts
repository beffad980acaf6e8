import { AsyncResource } from 'node:async_hooks';
import { execFileSync, spawn } from 'node:child_process';
import { RepriseError } from '../../core/errors.ts';
import { topLane } from '../../effects/recording/recording.ts';
import type { Tracer } from '../../effects/tracer.ts';
import type { AbandonableWorld, World } from '../../effects/world.ts';
import { abandonIncarnation, readmitIncarnation } from '../../process/table.ts';
import { exitCodeOfError } from '../../project/exit-codes.ts';
import { type CommandIo, type Host, writeLines } from '../../project/host.ts';
import { formatError } from '../../terminal/errors.ts';
import { groupsOf } from '../manifest/fields.ts';
import type { CaseManifest, CaseStep, Trigger } from '../manifest/manifest.ts';
import type { CaseClock } from './clock.ts';
import { isGitReal } from './failures.ts';
import type { Stage } from './stage.ts';
import { commandEffect, type StepIo, stepIo } from './step-io.ts';
import { type Watch, watchCase } from './triggers.ts';

/**
 * A world in which nobody goes on as long as it is held: a lane at the top that asks for nothing counts as running.
 * Otherwise whoever is not killed would get ahead of what is started in the place of who is, by as much as that takes.
 */
class HeldWorld {
  readonly #world: Pick<World, 'open'>;
  /** Where it was made: outside of all lanes, in whichever of them somebody is killed. */
  readonly #outside = new AsyncResource('reprise.held-world');
  readonly #holds = new Map<string, () => void>();

  constructor(world: Pick<World, 'open'>) {
    this.#world = world;
  }

  hold(name: string): void {
    if (this.#holds.has(name)) return;
    const isOver = new Promise<void>(resolve => this.#holds.set(name, resolve));
    // That the world is stopped, those are told who play in it.
    this.#outside.runInAsyncScope(() => this.#world.open(`${name} is left`, () => isOver)).catch(() => {});
  }

  letGo(name: string): void {
    this.#holds.get(name)?.();
    this.#holds.delete(name);
  }
}

/**
 * Moves the branch that a case is about, with its checkout, as somebody would who is not in the case. At once: whoever
 * is about to look at the branch must find it there. Throws GIT_FAILED.
 */
function moveMain({ stage, env }: Pick<Play, 'stage' | 'env'>, commit: string): void {
  try {
    execFileSync('git', ['reset', '--quiet', '--keep', commit], { cwd: stage.repo, env, stdio: 'pipe' });
  } catch (cause) {
    const said = String((cause as { readonly stderr?: Buffer }).stderr ?? cause).trim();
    throw new RepriseError('GIT_FAILED', `main of the case cannot be moved to ${commit}: ${said}`, {
      hint: 'the commit must be in the repository of the case: in the pack of [base], or made by a step before',
      cause,
    });
  }
}

/** Runs a script of a case for real, in the test repository. Gives its exit code. */
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

/** Carries out a command line of Reprise, as `main` does, and gives its exit code. */
export type Program = (args: readonly string[], io: CommandIo) => Promise<number>;

/** How a step came out. */
export interface PlayedStep {
  readonly step: CaseStep;
  readonly output: string;
  readonly end:
    | { readonly kind: 'exited'; readonly code: number }
    | { readonly kind: 'killed' }
    | { readonly kind: 'timed-out'; readonly afterMs: number };
}

interface Play {
  readonly manifest: CaseManifest;
  readonly stage: Stage;
  readonly program: Program;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: CaseClock;
  readonly defaultTimeoutMs: number;
  /** Aborting it is Ctrl-C for every step under way. */
  readonly interrupt?: AbortSignal | undefined;
  /** Told at once that a step is killed. */
  readonly onKill?: ((step: string) => void) | undefined;
  /** What is started in the place of a step that was killed, at once; without it nothing is. */
  readonly restart?: ((killed: CaseStep) => CaseStep | undefined) | undefined;
}

interface PlayWorld {
  readonly world: AbandonableWorld;
  readonly hostOf: (step: CaseStep) => Host;
  /** Called when a step has been killed, before anything else goes on there. */
  readonly onLeft: (step: string) => Promise<void>;
}

/** Plays the steps of a case: groups one after another, the steps of a group at once. */
export class Player {
  readonly #play: Play;
  readonly #watch: Watch;
  readonly #surroundings = new Map<string, StepIo>();
  readonly #killed = new Map<string, (end: PlayedStep['end']) => void>();
  readonly #incarnations = new Map<string, string[]>();
  /** What is still to be seen to before a step that was killed is over. */
  readonly #leaving: Promise<void>[] = [];
  #onLeft: (step: string) => Promise<void> = async () => {};
  #world: AbandonableWorld | undefined;
  /** Nobody goes on while a step is started in the place of another. */
  #held: HeldWorld | undefined;
  /** What a trigger could not do. */
  #fault: unknown;

  constructor(play: Play) {
    this.#play = play;
    this.#watch = watchCase({
      manifest: play.manifest,
      onTrigger: trigger => this.#fire(trigger),
      onKill: step => this.#kill(step, { kind: 'killed' }),
    });
  }

  /** To be told of what goes on in the world that the case is played in. */
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

  /** As if its process were killed now. */
  kill(step: string): void {
    this.#kill(step, { kind: 'killed' });
  }

  /** The steps that are being played. */
  alive(): readonly string[] {
    return [...this.#killed.keys()];
  }

  /** The performance is over: nobody holds anything any more, and whoever was killed may live again in another. */
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
    for (let step: CaseStep | undefined = first, former = first; step; ) {
      const playing = this.#playStep(step, { world, host: hostOf(step) });
      this.#held?.letGo(former.name);
      const now: PlayedStep = await playing;
      played.push(now);
      const next: CaseStep | undefined = now.end.kind === 'killed' ? this.#play.restart?.(step) : undefined;
      if (next) this.#watch.adopt(next.name, step.name);
      else this.#held?.letGo(step.name);
      former = step;
      step = next;
    }
    return played;
  }

  async #playStep(
    step: CaseStep,
    { world, host }: { readonly world: AbandonableWorld; readonly host: Host },
  ): Promise<PlayedStep> {
    const { manifest, stage, env, defaultTimeoutMs } = this.#play;
    const toBeTyped = manifest.triggers.filter(
      trigger => trigger.step === step.name && trigger.action.kind === 'input',
    ).length;
    const surroundings = stepIo({
      host,
      cwd: stage.repo,
      env: { ...env, ...manifest.env, ...step.env },
      stdin: step.stdin,
      toBeTyped,
    });
    this.#surroundings.set(step.name, surroundings);
    const { interrupt } = this.#play;
    const stop = () => surroundings.stop('SIGINT');
    if (interrupt?.aborted) stop();
    interrupt?.addEventListener('abort', stop);
    const afterMs = step.timeoutMs ?? defaultTimeoutMs;
    const ended = new Promise<PlayedStep['end']>(resolve => {
      this.#killed.set(step.name, resolve);
    });
    const patience = setTimeout(() => this.#kill(step.name, { kind: 'timed-out', afterMs }), afterMs);
    try {
      const exited = world
        .open(step.name, () => this.#carryOut(step, { world, surroundings }))
        .then((code): PlayedStep['end'] => ({ kind: 'exited', code: surroundings.exitCode(code) }));
      const end = await Promise.race([exited, ended]);
      return { step, output: surroundings.output(), end };
    } finally {
      this.#killed.delete(step.name);
      clearTimeout(patience);
      interrupt?.removeEventListener('abort', stop);
    }
  }

  async #carryOut(
    step: CaseStep,
    { world, surroundings }: { readonly world: AbandonableWorld; readonly surroundings: StepIo },
  ): Promise<number> {
    const { io } = surroundings;
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
    const surroundings = this.#surroundings.get(step);
    switch (action.kind) {
      case 'exit':
        surroundings?.stop('exit');
        break;
      case 'signal':
        surroundings?.stop(action.signal);
        break;
      case 'input':
        surroundings?.type(action.text);
        break;
      case 'advance_clock':
        this.#play.clock.advance(action.ms);
        break;
      case 'move_main':
        if (isGitReal(this.#play.manifest)) this.#attempt(() => moveMain(this.#play, action.commit));
    }
  }

  /** Whoever watches effects must not disturb them: it is said when all steps are over. */
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
