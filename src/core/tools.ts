/** Kind of a tool. Tool names are those of Claude Code; adapters translate other names. */
type ToolAction = 'read' | 'edit' | 'execute' | 'fetch' | 'harmless' | 'other';

const actions: Readonly<Record<string, ToolAction>> = {
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
  // Subagents request permission for each of their own tools; the others change nothing outside the conversation.
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

export const actionOf = (tool: string): ToolAction =>
  (Object.hasOwn(actions, tool) && actions[tool]) || 'other';

/** A rule in Claude Code's notation: `Edit`, `Bash(npm run *)`, `Read(src/**)`, `WebFetch(domain:example.com)`. */
export interface ToolRule {
  readonly tool: string;
  /** Text in the parentheses. */
  readonly about?: string | undefined;
}

/** Parses a rule. Returns a message for the user if the text is not a valid rule. */
export function parseRule(text: string): ToolRule | string {
  const parts = /^([A-Za-z_][\w-]*\*?)(?:\(([\s\S]*)\))?$/.exec(text.trim());
  const tool = parts?.[1];
  if (tool === undefined) return `\`${text}\` is not a valid rule: write \`Tool\` or \`Tool(pattern)\``;
  const about = parts?.[2];
  if (about === undefined || about === '*') return { tool };
  if (about.trim() === '')
    return `\`${text}\` has empty parentheses: write \`${tool}\` to match every use of the tool`;
  if (about.startsWith('~') && isAboutPaths(tool))
    return `\`${text}\` starts with \`~\`, which is not supported: write the absolute path, \`${tool}(//home/...)\``;
  return { tool, about };
}

const isAboutPaths = (tool: string): boolean => actionOf(tool) === 'read' || actionOf(tool) === 'edit';
