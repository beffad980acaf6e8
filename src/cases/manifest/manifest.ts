import type { JsonObject, Position } from '../../core/index.ts';
import type { PolicyName } from '../../effects/explore/index.ts';
import type { Claim } from '../../store/index.ts';

/** Validated content of a case file. */
export interface CaseManifest {
  /** Name of the file without `.toml`. The tapes, the score and the snapshot are named after it. */
  readonly name: string;
  readonly file: string;
  readonly displayFile: string;
  /** Table that defines the commands. The workers of a `worker_test` form one concurrent group. */
  readonly form: 'multi' | 'run' | 'worker_test';
  /** Commands of the case, in the order of the file and of the snapshot. */
  readonly steps: readonly CaseStep[];
  readonly description: string | undefined;
  /** Command that records the case, if `--record` alone is not enough. */
  readonly recordedBy: string | undefined;
  readonly showThinking: boolean;
  /** Model that replaces the model of every agent. */
  readonly model: string | undefined;
  readonly fidelity: Fidelity;
  /** Kinds of scripts that run for real on replay, such as `verify`. */
  readonly live: readonly LiveRole[];
  /** Environment of every command. The `env` of a command takes precedence. */
  readonly env: Texts;
  /** Whether the snapshot shows the order of the effects that lanes share. */
  readonly timeline: boolean;
  /** Initial files of the test repository: content by path. */
  readonly files: Texts;
  readonly scripts: Texts;
  /** Source of the workflows, agents and settings: `files`, or the current project. */
  readonly definitions: Definitions;
  readonly triggers: readonly Trigger[];
  /** Claims that other workers hold or held when the case starts. */
  readonly claims: readonly CaseClaim[];
  /** Commit that a captured case starts from. */
  readonly base: CaseBase | undefined;
  readonly invariants: readonly Invariant[];
  readonly explore: ExplorationSettings | undefined;
}

export type Texts = Readonly<Record<string, string>>;

export const fidelities = ['sessions', 'tape'] as const;
export type Fidelity = (typeof fidelities)[number];

export const definitionSources = ['case', 'project'] as const;
export type Definitions = (typeof definitionSources)[number];

export const liveRoles = ['run', 'setup', 'checks', 'gates', 'rank', 'verify', 'functions'] as const;
export type LiveRole = (typeof liveRoles)[number];

/** One command of a case. */
export interface CaseStep {
  readonly name: string;
  /** Reprise command such as `run`, not checked yet; `shell` runs `script`. */
  readonly command: string;
  readonly args: readonly string[];
  readonly stdin: string | undefined;
  readonly env: Texts;
  readonly concurrentGroup: string | undefined;
  /** Name in `scripts`. Set if and only if the command is `shell`. */
  readonly script: string | undefined;
  readonly expect: Expectation;
  readonly timeoutMs: number | undefined;
  readonly killAfter: KillAfter | undefined;
  /** Existing sessions to serve, in this order. Set only for workers of a `worker_test`. */
  readonly sessions: readonly ServedSession[] | undefined;
  readonly position: Position;
}

/** Conditions that must hold after a command. Unset ones are not checked. */
export interface Expectation {
  readonly exit: number | undefined;
  /** Expected files by path in the test repository. */
  readonly files: Readonly<Record<string, ExpectedFile>>;
  /** Subjects of all commits on main, oldest first. */
  readonly main: readonly string[] | undefined;
  /** Strings, or regular expressions between slashes (`patternOf`). */
  readonly output: readonly string[];
  readonly notOutput: readonly string[];
}

export type ExpectedFile =
  | { readonly kind: 'exact'; readonly content: string }
  | { readonly kind: 'contains'; readonly text: string }
  | { readonly kind: 'absent' };

/** Effect or event after which a command is killed. `nth` counts from 1. */
export type KillAfter =
  | { readonly kind: 'effect'; readonly effect: string; readonly nth: number }
  | {
      readonly kind: 'event';
      readonly event: string;
      /** Step of the workflow that the event is about; `undefined` matches any. */
      readonly step: string | undefined;
      readonly nth: number;
    };

/** Fires when a command reaches an effect. A trigger that never fires fails the case. */
export interface Trigger {
  /** Name of the command. */
  readonly step: string;
  /** Name of the effect. */
  readonly label: string;
  /** Arguments that the effect must have. Other arguments are ignored. */
  readonly fields: JsonObject;
  /** Index of the matching effect, counted from 1. */
  readonly nth: number;
  readonly action: TriggerAction;
  readonly position: Position;
}

export type TriggerAction =
  | { readonly kind: 'exit' }
  | { readonly kind: 'input'; readonly text: string }
  | { readonly kind: 'signal'; readonly signal: CaseSignal }
  | { readonly kind: 'advance_clock'; readonly ms: number }
  /** A process outside of the case moves the target branch. */
  | { readonly kind: 'move_main'; readonly commit: string };

export const caseSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
export type CaseSignal = (typeof caseSignals)[number];

export interface ServedSession {
  readonly role: string;
  /** Name of the session file in the case folder or in its parent folder. */
  readonly vcr: string;
  readonly position: Position;
}

/** A task that a worker outside of the case has claimed. */
export interface CaseClaim extends Pick<Claim, 'task' | 'state' | 'version' | 'by'> {}

export interface CaseBase {
  readonly commit: string;
  readonly branch: string;
  /** Path of the pack file, relative to the case folder. */
  readonly pack: string;
  readonly shallow: readonly string[];
}

/** A check that must succeed after every explored schedule. */
export interface Invariant {
  readonly name: string;
  readonly check:
    | { readonly kind: 'run'; readonly script: string }
    | { readonly kind: 'command'; readonly argv: readonly string[] };
  readonly position: Position;
}

/** Failures of the environment that exploration can inject. */
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

/** Settings for exploring other schedules of the case. */
export interface ExplorationSettings {
  readonly policy: PolicyName | undefined;
  readonly schedules: number | undefined;
  readonly forMs: number | undefined;
  readonly seed: number | undefined;
  readonly crashes: boolean | undefined;
  readonly faults: readonly FaultKind[] | undefined;
  /** Whether an outcome is accepted that no sequential schedule has. */
  readonly anyOutcome?: boolean | undefined;
}
