import type { AgentKind } from './agent.ts';
import type { WrittenAgent } from './agent-schema.ts';

/** Something that does not go together, at its key. */
export interface KeyProblem {
  readonly key?: keyof WrittenAgent | undefined;
  /** One of the names below the key. */
  readonly name?: string | undefined;
  readonly message: string;
  readonly hint?: string | undefined;
}

const onlyFor: Readonly<Partial<Record<keyof WrittenAgent, { kinds: readonly AgentKind[]; hint: string }>>> =
  {
    model: { kinds: ['claude', 'codex'], hint: 'say it under `args`, in the words of the program' },
    permissions: {
      kinds: ['claude', 'codex', 'acp', 'scripted'],
      hint: 'nothing can hold such a program back: remove the key, or use another kind of agent',
    },
    allow: { kinds: ['claude', 'codex', 'acp', 'scripted'], hint: 'nothing asks before such a program acts' },
    deny: { kinds: ['claude', 'codex', 'acp', 'scripted'], hint: 'nothing asks before such a program acts' },
    command: { kinds: ['claude', 'codex', 'acp', 'command'], hint: 'use `run` in the script' },
    args: { kinds: ['claude', 'codex', 'acp', 'command'], hint: 'use `run` in the script' },
    stall_timeout: {
      kinds: ['claude', 'codex', 'acp', 'command'],
      hint: 'a script is never silent by mistake',
    },
    script: { kinds: ['scripted'], hint: 'write `kind: scripted`' },
    script_file: { kinds: ['scripted'], hint: 'write `kind: scripted`' },
  };

/** What the shape alone does not forbid. */
export function agentProblems(agent: WrittenAgent): readonly KeyProblem[] {
  const { kind } = agent;
  const misplaced = Object.entries(onlyFor).flatMap(([name, { kinds, hint }]) => {
    const key = name as keyof WrittenAgent;
    if (agent[key] === undefined || kinds.includes(kind)) return [];
    return [{ key, message: `\`${key}\` means nothing for \`kind: ${kind}\``, hint }];
  });
  return [...misplaced, ...missing(agent), ...takenNames(agent)];
}

/** What `<next>` says itself, beside the inputs of the agent that it names. */
const wordsOfNext: ReadonlySet<string> = new Set(['agent', 'task', 'land', 'sleep', 'give-up', 'give_up']);

const takenNames = ({ inputs = {} }: WrittenAgent): readonly KeyProblem[] =>
  Object.keys(inputs)
    .filter(name => wordsOfNext.has(name))
    .map(name => ({
      key: 'inputs',
      name,
      message: `an input cannot be called \`${name}\`, which has a meaning of its own in \`<next>\``,
      hint: 'give it another name',
    }));

function missing({ kind, command, script, script_file }: WrittenAgent): readonly KeyProblem[] {
  if ((kind === 'acp' || kind === 'command') && command === undefined) {
    const example = kind === 'acp' ? '["gemini", "--acp"]' : '["node", "agent.js"]';
    return [{ message: `\`kind: ${kind}\` needs \`command\``, hint: `for example: command: ${example}` }];
  }
  if (kind !== 'scripted') return [];
  if (script !== undefined && script_file !== undefined)
    return [{ key: 'script_file', message: '`script` and `script_file` exclude each other' }];
  if (script === undefined && script_file === undefined)
    return [
      {
        message: '`kind: scripted` needs `script` or `script_file`',
        hint: 'for example: script: [{ say: "hello" }]',
      },
    ];
  return [];
}
