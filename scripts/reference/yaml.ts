// biome-ignore-all lint/suspicious/noTemplateCurlyInString: `${{ }}` is the syntax that this page is about.

import { agentSchema } from '../../src/agents/agent.ts';
import { functionNames } from '../../src/workflow/expression/evaluate.ts';
import { configJsonSchema } from '../../src/workflow/yaml/config.ts';
import { workflowJsonSchema } from '../../src/workflow/yaml/schema.ts';
import { block, code, matchNotes, page, table } from './markdown.ts';
import { type JsonSchema, type SchemaRow, schemaRows } from './schema-rows.ts';
import {
  agentsSample,
  configSample,
  contexts,
  examples,
  fanOutNotes,
  functions,
  inputsSample,
  workspaceNotes,
} from './yaml-notes.ts';

const isBelow = (key: string, parent: string) => key.startsWith(`${parent}.`) || key.startsWith(`${parent}[`);

const keyTable = (rows: readonly SchemaRow[]) =>
  table(
    ['key', 'type', 'meaning'],
    rows.map(({ key, type, required, description }) => [
      code(key),
      required ? `${type}, required` : type,
      description,
    ]),
  );

function stepSections(rows: readonly SchemaRow[]): readonly string[] {
  const all = rows
    .filter(({ key }) => isBelow(key, 'steps[]'))
    .map(row => ({ ...row, key: row.key.slice('steps[].'.length) }));
  const names = all.map(({ key }) => key).filter(key => !key.includes('.') && !key.includes('['));
  matchNotes('keys of steps', names, examples);
  return names.map(name =>
    [
      `### ${code(name)}`,
      keyTable(all.filter(({ key }) => key === name || isBelow(key, name))),
      block('yaml', examples[name]),
    ].join('\n\n'),
  );
}

/** The page on YAML: every key of a workflow file and of `reprise.yaml`. */
export function yamlReference(): string {
  const rows = schemaRows(workflowJsonSchema() as JsonSchema);
  const configRows = schemaRows(configJsonSchema(agentSchema) as JsonSchema);
  matchNotes('functions', functionNames, functions);
  return page(
    'YAML',
    'A workflow is a file with a list of steps. Refer to it by its path, or by its name if it is in `.reprise/workflows/`. The [guide](../guide/workflows-yaml.md) explains how the parts work together. Editors can validate files with `schemas/workflow.schema.json`. `reprise validate` checks everything and reports line and column.',
    'A duration has a unit: `250ms`, `30s`, `5m`, `1h30m`, `2d`. An id starts with a letter or `_`, followed by letters, digits, `_` and `-`.',
    '## The workflow',
    keyTable(rows.filter(({ key }) => !isBelow(key, 'inputs') && !isBelow(key, 'steps[]'))),
    '## Inputs',
    keyTable(rows.filter(({ key }) => isBelow(key, 'inputs'))),
    block('yaml', inputsSample),
    '## Steps',
    'A step has an `id` and exactly one of `run`, `agent`, `uses`, `approve` and `land`.',
    ...stepSections(rows),
    '## Expressions',
    'Values can contain `${{ }}`. A value that consists of a single expression keeps its type; any other value becomes a string. In a `run` script and in every other command, the value is passed in an environment variable, and a position in which the shell would run it is an error. See [values are not code](../guide/workflows-yaml.md#values-are-not-code).',
    table(
      ['name', 'meaning'],
      Object.entries(contexts).map(([name, meaning]) => [code(name), meaning]),
    ),
    'The operators are `!`, `<`, `<=`, `>`, `>=`, `==`, `!=`, `&&`, `||` and parentheses. `.name` and `[index]` access a part of a value. Strings are written in single quotes, and comparisons ignore case. There is no arithmetic.',
    table(
      ['function', 'result'],
      functionNames.map(name => functions[name] ?? []),
    ),
    '## Workspaces',
    ...workspaceNotes,
    '## Fan-out',
    ...fanOutNotes,
    '## reprise.yaml',
    'Settings of the project, in its root folder. All keys are optional. Settings of a workflow take precedence.',
    keyTable(configRows.filter(({ key }) => !isBelow(key, 'agents'))),
    block('yaml', configSample),
    '## Agents',
    'Define an agent under its name in `agents` of `reprise.yaml`, or in a file `.reprise/agents/<name>.md`. In such a file these keys are the front matter, and the text below them is the system prompt. `claude` and `codex` are available without a definition.',
    keyTable(
      configRows
        .filter(({ key }) => isBelow(key, 'agents.<name>') && !isBelow(key, 'agents.<name>.script[]'))
        .map(row => ({ ...row, key: row.key.slice('agents.<name>.'.length) })),
    ),
    block('yaml', agentsSample),
  );
}
