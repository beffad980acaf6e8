import { caseSchema } from '../../dist/cases/manifest/case-table.js';
import { examples, sections } from './case-notes.mjs';
import { block, code, matchNotes, page, table } from './markdown.mjs';
import { schemaRows } from './schema-rows.mjs';

const isBelow = (key, parent) => key.startsWith(`${parent}.`) || key.startsWith(`${parent}[`);

const keyTable = (rows, prefix = '') =>
  table(
    ['key', 'type', 'meaning'],
    rows.map(({ key, type, required, description }) => [
      code(key.slice(prefix.length)),
      required ? `${type}, required` : type,
      description,
    ]),
  );

/** What a [table] of the file may hold, with an example. */
function section(name, rows) {
  const { heading, prefix, text, leaveOut = [] } = sections[name];
  const below = rows.filter(
    ({ key }) => key.startsWith(prefix) && !leaveOut.some(inner => isBelow(key, inner)),
  );
  return [`## ${heading}`, text, keyTable(below, prefix), block('toml', examples[name])].join('\n\n');
}

/** Every key of a case file. */
export function caseFileReference() {
  const rows = schemaRows(caseSchema);
  const tables = rows
    .map(({ key }) => key)
    .filter(key => !/[.[]/.test(key) && rows.some(row => isBelow(row.key, key)));
  matchNotes('tables of a case file', tables, sections);
  matchNotes('tables of a case file', tables, examples);
  return page(
    'Case file',
    'A test case is a folder `cases/<group>/<name>/` (the group may be left out, or be several folders) with a file `<name>.toml` in it. Everything else in the folder is recorded: see the [guide](../guide/testing.md). Unknown keys are refused, with their line. Editors can check files against `schemas/case.schema.json`.',
    'A case has exactly one of `[multi]`, `[run]` and `[worker_test]`. Keys of the whole case stand at the top, before the first table.',
    '## The case',
    keyTable(rows.filter(({ key }) => !tables.some(name => isBelow(key, name)))),
    ...tables.map(name => section(name, rows)),
  );
}
