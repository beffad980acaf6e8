import type { Position } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';
import type { PolicyName } from '../../effects/explore/policies.ts';
import type { Claim } from '../../store/claims.ts';

/** A test case as its file says it, read and checked. */
export interface CaseManifest {
  /** The name of the file without `.toml`; the tapes, the score and the snapshot are named after it. */
  readonly name: string;
  readonly file: string;
  readonly displayFile: string;
  /** How the steps were written. The workers of a `worker_test` are steps of one concurrent group. */
  readonly form: 'multi' | 'run' | 'worker_test';
  /** In the order of the file, which is the order of the snapshot. */
  readonly steps: readonly CaseStep[];
  readonly description: string | undefined;
  /** The command that records the case, if `--record` alone cannot. */
  readonly recordedBy: string | undefined;
  readonly showThinking: boolean;
  /** Used in place of the model that agents are defined with. */
  readonly model: string | undefined;
  readonly fidelity: Fidelity;
  /** What runs for real on replay, such as `verify`. */
  readonly live: readonly LiveRole[];
  /** For every step; the `env` of a step goes before it. */
  readonly env: Texts;
  /** Whether the snapshot shows the order of the effects that lanes share. */
  readonly timeline: boolean;
  /** What the test repository holds at first: content by path. */
  readonly files: Texts;
  readonly scripts: Texts;
  /** Whose workflows, agents and settings are played: those in `files`, or those that the project has now. */
  readonly definitions: Definitions;
  readonly triggers: readonly Trigger[];
  /** What others have done with tasks before the case begins. */
  readonly claims: readonly CaseClaim[];
  /** What a captured case starts from. */
  readonly base: CaseBase | undefined;
  readonly invariants: readonly Invariant[];
  readonly explore: Exploration | undefined;
}

export type Texts = Readonly<Record<string, string>>;

export const fidelities = ['sessions', 'tape'] as const;
export type Fidelity = (typeof fidelities)[number];

export const definitionSources = ['case', 'project'] as const;
export type Definitions = (typeof definitionSources)[number];

export const liveRoles = ['run', 'setup', 'checks', 'gates', 'rank', 'verify', 'functions'] as const;
export type LiveRole = (typeof liveRoles)[number];

export interface CaseStep {
  readonly name: string;
  /** A command of Reprise such as `run`, not yet known to exist; `shell` runs `script`. */
  readonly command: string;
  readonly args: readonly string[];
  readonly stdin: string | undefined;
  readonly env: Texts;
  readonly concurrentGroup: string | undefined;
  /** A name in `scripts`. Set exactly for the command `shell`. */
  readonly script: string | undefined;
  readonly expect: Expectation;
  readonly timeoutMs: number | undefined;
  readonly killAfter: KillAfter | undefined;
  /** Sessions written by hand or recorded elsewhere, served in this order. Set for workers of a `worker_test` only. */
  readonly sessions: readonly ServedSession[] | undefined;
  readonly position: Position;
}

/** What must hold after a step. What is not set is not checked. */
export interface Expectation {
  readonly exit: number | undefined;
  /** By path in the test repository. */
  readonly files: Readonly<Record<string, ExpectedFile>>;
  /** The subjects of the commits on main, oldest first, all of them. */
  readonly main: readonly string[] | undefined;
  /** Each is a text, or a regular expression between slashes (`patternOf`). */
  readonly output: readonly string[];
  readonly notOutput: readonly string[];
}

export type ExpectedFile =
  | { readonly kind: 'exact'; readonly content: string }
  | { readonly kind: 'contains'; readonly text: string }
  | { readonly kind: 'absent' };

/** After what a step is killed. `nth` counts from 1. */
export type KillAfter =
  | { readonly kind: 'effect'; readonly effect: string; readonly nth: number }
  | {
      readonly kind: 'event';
      readonly event: string;
      /** The step of the workflow that the event is about; `undefined` is any. */
      readonly step: string | undefined;
      readonly nth: number;
    };

/** Fires when a step reaches an effect; one that never fires fails the case. */
export interface Trigger {
  /** The step of the case. */
  readonly step: string;
  /** The name of the effect. */
  readonly label: string;
  /** Arguments that the effect must have; others may be anything. */
  readonly fields: JsonObject;
  /** Which of the effects that fit, counted from 1. */
  readonly nth: number;
  readonly action: TriggerAction;
  readonly position: Position;
}

export type TriggerAction =
  | { readonly kind: 'exit' }
  | { readonly kind: 'input'; readonly text: string }
  | { readonly kind: 'signal'; readonly signal: CaseSignal }
  | { readonly kind: 'advance_clock'; readonly ms: number }
  /** Somebody who is not in the case moves the branch that it is about. */
  | { readonly kind: 'move_main'; readonly commit: string };

export const caseSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
export type CaseSignal = (typeof caseSignals)[number];

export interface ServedSession {
  readonly role: string;
  /** The session's name, which is looked for among the files of the case and its neighbours. */
  readonly vcr: string;
  readonly position: Position;
}

/** A task that somebody has or had, who is not in the case. */
export interface CaseClaim extends Pick<Claim, 'task' | 'state' | 'version' | 'by'> {}

export interface CaseBase {
  readonly commit: string;
  readonly branch: string;
  /** The file of the pack, relative to the case folder. */
  readonly pack: string;
  readonly shallow: readonly string[];
}

/** A command that must succeed after every explored order. */
export interface Invariant {
  readonly name: string;
  readonly check:
    | { readonly kind: 'run'; readonly script: string }
    | { readonly kind: 'command'; readonly argv: readonly string[] };
  readonly position: Position;
}

/** What can fail on the outside. */
export const faultKinds = [
  'git-lock',
  'push-rejected',
  'disk-full',
  'store-busy',
  'agent-dies',
  'agent-hangs',
  'clock-jump',
] as const;
export type FaultKind = (typeof faultKinds)[number];

/** How other orders of the case are explored. */
export interface Exploration {
  readonly policy: PolicyName | undefined;
  readonly schedules: number | undefined;
  readonly forMs: number | undefined;
  readonly seed: number | undefined;
  readonly crashes: boolean | undefined;
  readonly faults: readonly FaultKind[] | undefined;
}
