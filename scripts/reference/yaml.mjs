// biome-ignore-all lint/suspicious/noTemplateCurlyInString: `${{ }}` is the syntax that this page is about.

import { agentSchema } from '../../dist/agents/agent.js';
import { functionNames } from '../../dist/workflow/expression/evaluate.js';
import { configJsonSchema } from '../../dist/workflow/yaml/config.js';
import { workflowJsonSchema } from '../../dist/workflow/yaml/schema.js';
import { block, code, matchNotes, page, table } from './markdown.mjs';
import { schemaRows } from './schema-rows.mjs';
import {
  agentsSample,
  configSample,
  contexts,
  examples,
  fanOutNotes,
  functions,
  inputsSample,
  workspaceNotes,
} from './yaml-notes.mjs';

const isBelow = (key, parent) => key.startsWith(`${parent}.`) || key.startsWith(`${parent}[`);

const keyTable = rows =>
  table(
    ['key', 'type', 'meaning'],
    rows.map(({ key, type, required, description }) => [
      code(key),
      required ? `${type}, required` : type,
      description,
    ]),
  );

function stepSections(rows) {
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

/** Every key of a workflow file and of `reprise.yaml`. */
export function yamlReference() {
  const rows = schemaRows(workflowJsonSchema());
  const configRows = schemaRows(configJsonSchema(agentSchema));
  matchNotes('functions', functionNames, functions);
  return page(
    'YAML',
    'A workflow is a file with a list of steps. It is found by its path, or by its name if it is in `.reprise/workflows/`. The [guide](../guide/workflows-yaml.md) explains how the parts work together. Editors can check files against `schemas/workflow.schema.json`, and `reprise validate` checks everything, with line and column.',
    'Durations are written with a unit: `250ms`, `30s`, `5m`, `1h30m`, `2d`. An id begins with a letter or `_` and goes on with letters, digits, `_` and `-`.',
    '## The workflow',
    keyTable(rows.filter(({ key }) => !isBelow(key, 'inputs') && !isBelow(key, 'steps[]'))),
    '## Inputs',
    keyTable(rows.filter(({ key }) => isBelow(key, 'inputs'))),
    block('yaml', inputsSample),
    '## Steps',
    'A step has an `id` and exactly one of `run`, `agent`, `uses`, `approve` and `land`.',
    ...stepSections(rows),
    '## Expressions',
    'Values may contain `${{ }}`. A value that is nothing but one expression keeps its type; any other becomes text. In a `run` script and in every other command the value travels in an environment variable and is never read as code.',
    table(
      ['name', 'what it is'],
      Object.entries(contexts).map(([name, meaning]) => [code(name), meaning]),
    ),
    'Operators are `!`, `<`, `<=`, `>`, `>=`, `==`, `!=`, `&&`, `||` and parentheses; `.name` and `[index]` read parts. Text is written in single quotes, and compared without regard to case. There is no arithmetic.',
    table(
      ['function', 'what it gives'],
      functionNames.map(name => functions[name]),
    ),
    '## Workspaces',
    ...workspaceNotes,
    '## Fan-out',
    ...fanOutNotes,
    '## reprise.yaml',
    'Settings of the project, in its root. All keys are optional. What a workflow says itself goes first.',
    keyTable(configRows.filter(({ key }) => !isBelow(key, 'agents'))),
    block('yaml', configSample),
    '## Agents',
    'An agent stands under its name in `agents` of `reprise.yaml`, or in `.reprise/agents/<name>.md`: there these keys are the front matter, and the text below is the system prompt. `claude` and `codex` are there without a definition.',
    keyTable(
      configRows
        .filter(({ key }) => isBelow(key, 'agents.<name>') && !isBelow(key, 'agents.<name>.script[]'))
        .map(row => ({ ...row, key: row.key.slice('agents.<name>.'.length) })),
    ),
    block('yaml', agentsSample),
  );
}
