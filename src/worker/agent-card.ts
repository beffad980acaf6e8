/** What others know of an agent that they may hand over to. */
export interface AgentCard {
  readonly description?: string | undefined;
  /** What it has to be told. Without any, it may be told whatever helps. */
  readonly inputs?: Readonly<Record<string, AgentInput>> | undefined;
}

export interface AgentInput {
  readonly description?: string | undefined;
  readonly required: boolean;
}

export type AgentCards = ReadonlyMap<string, AgentCard>;
