import { isJsonObject, type Json, parseDuration } from '../core/index.ts';
import { DefinitionError, type Problem } from '../workflow/index.ts';
import type { AgentRules } from '../workflow/yaml/index.ts';
import {
  type Complaint,
  explainIssues,
  ProblemList,
  schemaKeys,
  YamlSource,
} from '../workflow/yaml/source/index.ts';
import {
  type AgentDefinition,
  agentJsonSchema,
  agentProblems,
  agentSchema,
  type WrittenAgent,
} from './agent.ts';

interface AgentSources {
  /** `agents` map of `reprise.yaml`, or `null` if there is none. */
  readonly config: Json;
  /** Files in `.reprise/agents`, with names without `.md`. */
  readonly files: readonly { readonly name: string; readonly text: string }[];
}

/** Returns the agents of a project by name. Throws a DefinitionError with all problems, with positions for files. */
export function parseAgents({ config, files }: AgentSources): ReadonlyMap<string, AgentDefinition> {
  const agents = new Map<string, AgentDefinition>();
  const problems: Problem[] = [];
  const named = config === null ? {} : config;
  if (!isJsonObject(named))
    throw new DefinitionError([{ message: '`agents` must be a map of agents by name' }]);
  for (const [name, value] of Object.entries(named)) {
    const { agent, complaints } = readAgent(name, value);
    problems.push(...[...nameProblem(name), ...complaints].map(complaint => atConfig(name, complaint)));
    if (agent) agents.set(name, agent);
  }
  for (const file of files) {
    const read = readFile(file);
    problems.push(...read.problems);
    if (agents.has(file.name)) {
      problems.push({
        message: `the agent \`${file.name}\` is defined twice: in reprise.yaml and in ${pathOf(file.name)}`,
        hint: 'remove one of them',
        position: { file: pathOf(file.name), line: 1, column: 1 },
      });
    }
    if (read.agent) agents.set(file.name, read.agent);
  }
  if (problems.length > 0) throw new DefinitionError(problems);
  return agents;
}

const pathOf = (name: string): string => `.reprise/agents/${name}.md`;

const nameProblem = (name: string): readonly Complaint[] =>
  /^[A-Za-z_][\w-]*$/.test(name)
    ? []
    : [
        {
          path: [],
          atKey: true,
          message: `\`${name}\` is not a valid name for an agent`,
          hint: 'use letters, digits, `-` and `_`',
        },
      ];

/** Names the key instead of a position, because the text of `reprise.yaml` is not available here. */
const atConfig = (name: string, { path, message, hint }: Complaint): Problem => ({
  // Messages about a whole file refer to the agent here.
  message: `agents.${name}: ${path.length === 0 ? message.replace(/^the file /, 'it ') : message}`,
  hint,
});

function readAgent(name: string, value: Json) {
  const parsed = agentSchema.safeParse(value);
  if (!parsed.success) {
    const keysAt = (parent: readonly (string | number)[]) => schemaKeys(agentJsonSchema() as Json, parent);
    const wording = { unknownKey: () => undefined, keysAt };
    return { complaints: explainIssues(parsed.error.issues, value, wording) };
  }
  return { agent: definitionOf(name, parsed.data), complaints: complaintsAbout(parsed.data) };
}

const complaintsAbout = (agent: WrittenAgent): readonly Complaint[] =>
  agentProblems(agent).map(({ key, name, message, hint }) => ({
    path: key ? [key, ...(name === undefined ? [] : [name])] : [],
    atKey: key !== undefined,
    message,
    hint,
  }));

/** Rules for the reader of `reprise.yaml`, which adds the positions. */
export const agentRules: AgentRules = {
  schema: agentSchema,
  problemsOf: (name, agent) => [...nameProblem(name), ...complaintsAbout(agentSchema.parse(agent))],
};

const noFrontMatter = (name: string): Problem => ({
  message: 'the file does not start with front matter',
  hint: 'start it with the lines `---`, `kind: claude` and `---`, followed by the system prompt',
  position: { file: pathOf(name), line: 1, column: 1 },
});

function readFile({ name, text }: AgentSources['files'][number]) {
  const { yaml, body } = splitFrontMatter(text);
  if (yaml === undefined) return { problems: [noFrontMatter(name)] };
  const source = new YamlSource({ file: pathOf(name), text: yaml });
  const list = new ProblemList();
  list.open(source);
  if (!source.isReadable) return { problems: list.all() };
  const { agent, complaints } = readAgent(name, source.value ?? {});
  for (const complaint of [...nameProblem(name), ...complaints]) list.add(source, complaint);
  if (agent?.systemPrompt !== undefined && body !== '') {
    const message = 'the system prompt is given both in `system_prompt` and below the front matter';
    list.add(source, { path: ['system_prompt'], atKey: true, message, hint: 'keep one of them' });
  }
  const whole = agent && body !== '' ? { ...agent, systemPrompt: body } : agent;
  return { agent: whole, problems: list.all() };
}

function definitionOf(name: string, written: WrittenAgent): AgentDefinition {
  const { price } = written;
  return {
    name,
    kind: written.kind,
    description: written.description,
    inputs: written.inputs && inputsOf(written.inputs),
    model: written.model,
    permissions: written.permissions ?? 'edit',
    ...(written.permissions || written.allow || written.deny ? { isRestricted: true } : {}),
    allow: written.allow ?? [],
    deny: written.deny ?? [],
    command: written.command,
    args: written.args ?? [],
    env: written.env ?? {},
    systemPrompt: written.system_prompt,
    escapes: written.escapes,
    maxConcurrency: written.max_concurrency,
    timeoutMs: written.timeout === undefined ? undefined : parseDuration(written.timeout),
    stallTimeoutMs: written.stall_timeout === undefined ? undefined : parseDuration(written.stall_timeout),
    script: written.script,
    scriptFile: written.script_file,
    price: price && { inputPerMtok: price.input_per_mtok, outputPerMtok: price.output_per_mtok },
  };
}

const inputsOf = (written: NonNullable<WrittenAgent['inputs']>): AgentDefinition['inputs'] =>
  Object.fromEntries(
    Object.entries(written).map(([name, input]) => [
      name,
      { description: input?.description, required: input?.required ?? true },
    ]),
  );

interface FrontMatter {
  /** Front matter with the same lines and columns as in the file, or `undefined` if there is none. */
  readonly yaml: string | undefined;
  /** Trimmed text below the front matter. */
  readonly body: string;
  /** Offset of the line that ends the front matter, or `undefined` if it never ends. */
  readonly endsAt: number | undefined;
  /** Difference between an offset in the text and the same offset in `yaml`. */
  readonly shift: number;
}

/** Splits a Markdown file at the `---` lines around its front matter. Without them, the whole text is the body. */
export function splitFrontMatter(text: string): FrontMatter {
  const mark = text.startsWith('\uFEFF') ? 1 : 0;
  const content = text.slice(mark);
  const lines = content.split('\n');
  const isFence = (line: string) => /^---[ \t]*\r?$/.test(line);
  const opening = lines[0] ?? '';
  if (!isFence(opening)) return { yaml: undefined, body: content.trim(), endsAt: undefined, shift: mark };
  const end = lines.findIndex((line, index) => index > 0 && isFence(line));
  const last = end < 0 ? lines.length : end;
  return {
    yaml: ['', ...lines.slice(1, last), ''].join('\n'),
    body: lines
      .slice(last + 1)
      .join('\n')
      .trim(),
    endsAt: end < 0 ? undefined : mark + lines.slice(0, end).join('\n').length + 1,
    shift: mark + opening.length,
  };
}
