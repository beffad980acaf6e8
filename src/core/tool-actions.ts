/** What a tool does, whatever it is called. Tools go by the names of Claude Code here; adapters translate. */
export type Action = 'read' | 'edit' | 'execute' | 'fetch' | 'harmless' | 'other';

const actions: Readonly<Record<string, Action>> = {
  Read: 'read',
  NotebookRead: 'read',
  Glob: 'read',
  Grep: 'read',
  LS: 'read',
  Edit: 'edit',
  Write: 'edit',
  MultiEdit: 'edit',
  NotebookEdit: 'edit',
  Bash: 'execute',
  WebFetch: 'fetch',
  // Subagents ask for each of their tools themselves; the rest changes nothing outside of the conversation.
  Task: 'harmless',
  Agent: 'harmless',
  TaskOutput: 'harmless',
  TaskStop: 'harmless',
  BashOutput: 'harmless',
  KillShell: 'harmless',
  TodoWrite: 'harmless',
  ToolSearch: 'harmless',
  Skill: 'harmless',
  StructuredOutput: 'harmless',
  ExitPlanMode: 'harmless',
  Think: 'harmless',
};

export const actionOf = (tool: string): Action => (Object.hasOwn(actions, tool) && actions[tool]) || 'other';
