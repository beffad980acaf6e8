import type { AgentEvent } from '../agents/session.ts';
import { isJsonObject, type Json } from '../core/json.ts';
import { firstLine, safeLine } from '../view/safe-text.ts';

/**
 * What an agent does, in a few words on one line; `undefined` for what is not worth a line. Files in the folder that it
 * works in are called as they are called there.
 */
export function agentAction(event: AgentEvent, folder?: string): string | undefined {
  const within = (text: string) => (folder === undefined ? text : text.replaceAll(`${folder}/`, ''));
  switch (event.type) {
    case 'text':
    case 'thought':
      return firstLine(event.text) || undefined;
    case 'tool-start':
      return within(event.title ? firstLine(event.title) : toolText(event.name, event.input));
    case 'permission':
      return event.decision?.kind === 'deny'
        ? within(`was denied ${toolText(event.tool, event.input)}`)
        : undefined;
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
