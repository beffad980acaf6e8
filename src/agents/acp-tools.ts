import { isJsonObject, type Json } from '../core/json.ts';
import { actionOf } from '../core/tools.ts';
import { at, listAt, textAt } from './json-line.ts';

/** What is known of a tool call: agents tell it bit by bit, in any order. */
export interface AcpTool {
  readonly name?: string | undefined;
  readonly title?: string | undefined;
  readonly kind?: string | undefined;
  readonly input?: Json | undefined;
  readonly paths: readonly string[];
  readonly isStarted: boolean;
}

export const noTool: AcpTool = { paths: [], isStarted: false };

/** With what a message adds. */
export function mergeTool(known: AcpTool = noTool, call: Json | undefined): AcpTool {
  const input = at(call, 'rawInput');
  const named = [...listAt(call, 'locations'), ...listAt(call, 'content')].flatMap(
    place => textAt(place, 'path') ?? [],
  );
  return {
    name: textAt(call, 'name') ?? known.name,
    title: textAt(call, 'title') ?? known.title,
    kind: textAt(call, 'kind') ?? known.kind,
    input: isEmpty(input) ? known.input : input,
    paths: [...new Set([...known.paths, ...named])],
    isStarted: known.isStarted,
  };
}

const isEmpty = (input: Json | undefined): boolean =>
  input === undefined || input === null || (isJsonObject(input) && Object.keys(input).length === 0);

const names: Readonly<Record<string, string>> = {
  read: 'Read',
  edit: 'Edit',
  delete: 'Edit',
  move: 'Edit',
  search: 'Grep',
  execute: 'Bash',
  fetch: 'WebFetch',
  think: 'Think',
};

/** The call as a wish in the common vocabulary. What it is called counts less than what kind of thing it does. */
export function acpWish(tool: AcpTool = noTool): { readonly tool: string; readonly input: Json } {
  const byKind = Object.hasOwn(names, tool.kind ?? '') ? names[tool.kind ?? ''] : undefined;
  const isKnown = tool.name !== undefined && actionOf(tool.name) !== 'other';
  const agrees = isKnown && (byKind === undefined || actionOf(tool.name ?? '') === actionOf(byKind));
  const name = agrees ? tool.name : (byKind ?? tool.name);
  return { tool: name ?? tool.title ?? 'tool', input: wishInput(tool, name ?? '') };
}

function wishInput({ input, title, paths }: AcpTool, name: string): Json {
  const fields = isJsonObject(input) ? input : {};
  switch (actionOf(name)) {
    case 'execute': {
      const words = listAt(fields, 'command');
      const command = textAt(fields, 'command') ?? (words.length > 0 ? words.join(' ') : (title ?? ''));
      return { ...fields, command };
    }
    case 'read':
    case 'edit':
      return paths.length > 0 ? { ...fields, paths } : fields;
    case 'fetch':
    case 'harmless':
    case 'other':
      return input ?? fields;
  }
}
