import { isAbsolute, join } from 'node:path';
import type { Json } from '../../../src/core/json.ts';
import { type Action, type Conversation, type OfferedTool, type Part, type Reply, toldIn } from './script.ts';

/** Translates a reply into text and calls to the tools that the agent offers. */
export function partsOf(reply: Reply, conversation: Conversation): readonly Part[] {
  return [
    ...(reply.think ? [{ kind: 'thought', text: reply.think } as const] : []),
    ...(reply.say ? [{ kind: 'text', text: withKey(reply.say, conversation) } as const] : []),
    ...(reply.actions ?? []).map(action => partOf(action, conversation)),
  ];
}

/** Repeats the key of the last prompt in a `<next>` tag, as a model does. */
function withKey(said: string, conversation: Conversation): string {
  const shown = [...toldIn(conversation).matchAll(/<next key="\w+">/g)].at(-1)?.[0];
  return shown === undefined ? said : said.replaceAll('<next>', shown);
}

function partOf(action: Action, conversation: Conversation): Part {
  const call = (name: string, input: Json): Part | undefined => {
    const tool = conversation.tools.find(offered => offered.name === name);
    return tool && { kind: 'call', name, input, ...inNamespace(tool) };
  };
  if ('use' in action) return { kind: 'call', name: action.use.tool, input: action.use.input };
  if ('answer' in action)
    return call('StructuredOutput', action.answer) ?? { kind: 'text', text: JSON.stringify(action.answer) };
  if ('run' in action) {
    return (
      call('Bash', { command: action.run, description: 'Run a command' }) ??
      call('exec_command', { cmd: action.run, ...(action.unconfined ? unconfined : {}) }) ??
      call('run_shell_command', { command: action.run, description: 'Run', is_background: false }) ??
      call('bash', { command: action.run, description: 'Run a command' }) ??
      cannot(action, conversation)
    );
  }
  if ('read' in action) {
    const path = absolute(action.read, conversation);
    return (
      call('Read', { file_path: path }) ??
      call('read_file', { file_path: path, absolute_path: path }) ??
      call('read', { filePath: path }) ??
      call('view', { path }) ??
      cannot(action, conversation)
    );
  }
  if ('edit' in action) {
    const { path, from, to } = action.edit;
    const input = { file_path: absolute(path, conversation), old_string: from, new_string: to };
    return call('Edit', input) ?? cannot(action, conversation);
  }
  const { content } = action.write;
  const path = absolute(action.write.path, conversation);
  return (
    call('Write', { file_path: path, content }) ??
    call('apply_patch', patchThatAdds(path, content)) ??
    call('write_file', { file_path: path, content }) ??
    call('write', { filePath: path, content }) ??
    call('create', { path, file_text: content }) ??
    cannot(action, conversation)
  );
}

const unconfined = {
  sandbox_permissions: 'require_escalated',
  justification: 'The command needs more access.',
};

const inNamespace = ({ namespace }: OfferedTool) => (namespace === undefined ? {} : { namespace });

const cannot = (action: Action, { tools }: Conversation): Part => ({
  kind: 'text',
  text: `No tool for ${JSON.stringify(action)} among ${tools.map(({ name }) => name).join(', ')}`,
});

const patchThatAdds = (path: string, content: string): string => {
  const lines = content.replace(/\n$/, '').split('\n');
  return `*** Begin Patch\n*** Add File: ${path}\n${lines.map(line => `+${line}`).join('\n')}\n*** End Patch\n`;
};

const folderPatterns = [
  /Primary working directory: (\/[^\s<`'"]+)/,
  /<cwd>(\/[^<]+)<\/cwd>/,
  /Working directory: (\/[^\s<`'"]+)/i,
  /(?:current working directory|currently working in the directory)[^/\n]{0,30}(\/[^\s<`'"]+)/i,
  /Workspace Directories:\*{0,2}\s*-\s*(\/[^\s<`'"]+)/i,
];

/** Resolves a path against the working folder, which agents tell the model. */
function absolute(path: string, conversation: Conversation): string {
  if (isAbsolute(path)) return path;
  const folder = folderToldIn(toldIn(conversation));
  return folder === undefined ? path : join(folder, path);
}

/** Working folder of an agent, from the text that it sends. */
export const folderToldIn = (told: string): string | undefined =>
  folderPatterns.flatMap(pattern => pattern.exec(told)?.[1] ?? [])[0];
