/**
 * Generates the references and schemas from the code. `--check` writes nothing, lists the stale files, and exits with 1 if
 * there are any.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { agentSchema } from '../src/agents/agent.ts';
import { caseSchema } from '../src/cases/manifest/case-table.ts';
import { configJsonSchema } from '../src/workflow/yaml/config.ts';
import { workflowJsonSchema } from '../src/workflow/yaml/schema.ts';
import { caseFileReference } from './reference/case-file.ts';
import { cliReference } from './reference/cli.ts';
import { errorsReference } from './reference/errors.ts';
import { eventsReference } from './reference/events.ts';
import { yamlReference } from './reference/yaml.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const biome = join(root, 'node_modules', '@biomejs', 'biome', 'bin', 'biome');
const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;

/** Formats a page, so that the format check accepts it. */
const formatted = (name: string, text: string) =>
  execFileSync(process.execPath, [biome, 'format', `--stdin-file-path=${name}`], {
    cwd: root,
    input: text,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'ignore'],
  });

const files: Record<string, string> = {
  'schemas/workflow.schema.json': json(workflowJsonSchema()),
  'schemas/config.schema.json': json(configJsonSchema(agentSchema)),
  'schemas/case.schema.json': json(caseSchema),
};
const pages = {
  'docs/reference/errors.md': errorsReference(),
  'docs/reference/events.md': eventsReference(),
  'docs/reference/yaml.md': yamlReference(),
  'docs/reference/case-file.md': caseFileReference(),
  'docs/reference/cli.md': await cliReference(),
};
for (const [name, text] of Object.entries(pages)) files[name] = formatted(name, text);

function isCurrent(file: string, text: string): boolean {
  try {
    return readFileSync(file, 'utf8') === text;
  } catch {
    return false;
  }
}

const stale = Object.entries(files)
  .map(([name, text]) => ({ file: join(root, name), text }))
  .filter(({ file, text }) => !isCurrent(file, text));

if (process.argv.includes('--check')) {
  for (const { file } of stale) console.error(`${relative(root, file)} is stale: run npm run generate`);
  process.exitCode = stale.length > 0 ? 1 : 0;
} else {
  for (const { file, text } of stale) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    console.log(`wrote ${relative(root, file)}`);
  }
}
