/** What a tool does, whatever it is called. Tools go by the names of Claude Code here; adapters translate. */
type Action = 'read' | 'edit' | 'execute' | 'fetch' | 'harmless' | 'other';

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

/** A rule in Claude Code's notation: `Edit`, `Bash(npm run *)`, `Read(src/**)`, `WebFetch(domain:example.com)`. */
export interface Rule {
  readonly tool: string;
  /** What stands in the parentheses. */
  readonly about?: string | undefined;
}

/** A sentence about what is wrong, if it is not a rule. */
export function parseRule(text: string): Rule | string {
  const parts = /^([A-Za-z_][\w-]*\*?)(?:\(([\s\S]*)\))?$/.exec(text.trim());
  const tool = parts?.[1];
  if (tool === undefined) return `\`${text}\` is not a rule: write \`Tool\` or \`Tool(what)\``;
  const about = parts?.[2];
  if (about === undefined || about === '*') return { tool };
  if (about.trim() === '')
    return `\`${text}\` says nothing in its parentheses: write \`${tool}\` for all of it`;
  if (about.startsWith('~') && isAboutPaths(tool))
    return `\`${text}\` names a home folder: write the whole path, \`${tool}(//home/...)\``;
  return { tool, about };
}

const isAboutPaths = (tool: string): boolean => actionOf(tool) === 'read' || actionOf(tool) === 'edit';
