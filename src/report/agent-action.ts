import type { AgentEvent } from '../agents/port.ts';
import { isJsonObject, type Json } from '../core/json.ts';
import { firstLine, safeLine } from './safe-text.ts';

/** What an agent does, in a few words on one line; `undefined` for what is not worth a line. */
export function agentAction(event: AgentEvent): string | undefined {
  switch (event.type) {
    case 'text':
    case 'thought':
      return firstLine(event.text) || undefined;
    case 'tool-start':
      return event.title ? firstLine(event.title) : toolText(event.name, event.input);
    case 'permission':
      return event.decision?.kind === 'deny' ? `was denied ${toolText(event.tool, event.input)}` : undefined;
    case 'retry':
      return `tries again: ${safeLine(event.reason)}`;
    case 'limit':
      return `ran into a limit: ${safeLine(event.reason)}`;
    case 'started':
    case 'tool-end':
    case 'usage':
    case 'raw':
    case 'done':
      return undefined;
  }
}

/** What tells most about a call, by the names that tools give to it. */
const telling = ['command', 'file_path', 'notebook_path', 'path', 'pattern', 'url', 'query', 'description'];

/** `Edit src/a.ts`, `Bash npm test`. */
function toolText(name: string, input: Json): string {
  const given = isJsonObject(input) ? input : {};
  const value = telling.map(key => given[key]).find(each => typeof each === 'string' && each !== '');
  return safeLine(typeof value === 'string' ? `${name} ${firstLine(value)}` : name);
}
