import { caseSchema } from '../../src/cases/manifest/case-table.ts';
import { examples, sections } from './case-notes.ts';
import { block, code, matchNotes, page, table } from './markdown.ts';
import { type JsonSchema, type SchemaRow, schemaRows } from './schema-rows.ts';

const isBelow = (key: string, parent: string) => key.startsWith(`${parent}.`) || key.startsWith(`${parent}[`);

const keyTable = (rows: readonly SchemaRow[], prefix = '') =>
  table(
    ['key', 'type', 'meaning'],
    rows.map(({ key, type, required, description }) => [
      code(key.slice(prefix.length)),
      required ? `${type}, required` : type,
      description,
    ]),
  );

/** The keys of a [table] of the file, with an example. */
function section(name: string, rows: readonly SchemaRow[]): string {
  const { heading, prefix, text, leaveOut = [] } = sections[name] ?? noSection(name);
  const below = rows.filter(
    ({ key }) => key.startsWith(prefix) && !leaveOut.some(inner => isBelow(key, inner)),
  );
  return [`## ${heading}`, text, keyTable(below, prefix), block('toml', examples[name])].join('\n\n');
}

function noSection(name: string): never {
  throw new Error(`no notes on [${name}]`);
}

/** Every key of a case file. */
export function caseFileReference(): string {
  const rows = schemaRows(caseSchema as JsonSchema);
  const tables = rows
    .map(({ key }) => key)
    .filter(key => !/[.[]/.test(key) && rows.some(row => isBelow(row.key, key)));
  matchNotes('tables of a case file', tables, sections);
  matchNotes('tables of a case file', tables, examples);
  return page(
    'Case file',
    'A test case is a folder `cases/<group>/<name>/` with a file `<name>.toml` in it. The group is optional and can be several folders deep. All other files in the folder are recorded: see [recordings](recordings.md). Unknown keys are an error, reported with their line. Editors can validate the files with `schemas/case.schema.json`.',
    'A case has exactly one of `[multi]`, `[run]` and `[worker_test]`. Put keys of the whole case at the top, before the first table.',
    '## The case',
    keyTable(rows.filter(({ key }) => !tables.some(name => isBelow(key, name)))),
    ...tables.map(name => section(name, rows)),
  );
}
