import type { Script } from './scripted/script.ts';

export const agentKinds = ['claude', 'codex', 'acp', 'command', 'scripted'] as const;
export type AgentKind = (typeof agentKinds)[number];

export const presets = ['read-only', 'edit', 'full'] as const;
/** What an agent may do without being asked about it one by one. */
export type Preset = (typeof presets)[number];

export interface AgentInput {
  readonly description?: string | undefined;
  readonly required: boolean;
}

/** An agent as `reprise.yaml` or `.reprise/agents/<name>.md` defines it. */
export interface AgentDefinition {
  readonly name: string;
  readonly kind: AgentKind;
  /** What it is for, in the words that other agents choose it by. */
  readonly description?: string | undefined;
  /** What whoever hands over to it has to tell it, by name. */
  readonly inputs?: Readonly<Record<string, AgentInput>> | undefined;
  readonly model?: string | undefined;
  readonly permissions: Preset;
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  /** The program with its first arguments, if it is not the usual one of its kind. */
  readonly command?: readonly string[] | undefined;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly systemPrompt?: string | undefined;
  /** How many sessions may run at the same time, across runs. */
  readonly maxConcurrency?: number | undefined;
  /** For a whole session. */
  readonly timeoutMs?: number | undefined;
  /** For silence. */
  readonly stallTimeoutMs?: number | undefined;
  readonly script?: Script | undefined;
  /** Relative to the workspace. */
  readonly scriptFile?: string | undefined;
  /** US dollars for a million tokens, for agents that do not say what they cost. */
  readonly price?: { readonly inputPerMtok: number; readonly outputPerMtok: number } | undefined;
}
