import { z } from 'zod';
import { eventDataSchemas, eventTypes } from '../../dist/core/events.js';
import { errorFields, fields, moments } from './event-notes.mjs';
import { block, code, matchNotes, page, table } from './markdown.mjs';
import { typeName } from './schema-rows.mjs';

const envelope = [
  ['`seq`', 'whole number from 1', 'Its place in the history, without gaps.'],
  ['`runId`', 'text', 'The run.'],
  ['`at`', 'text', 'When it was written: ISO 8601, UTC, milliseconds. Times are nowhere else.'],
  ['`type`', 'text', 'One of the types below.'],
  [
    '`step`',
    'text, optional',
    'Path of the step, such as `deploy`, or `deploy/build` inside a child workflow. Absent on events of the run.',
  ],
  ['`worker`', 'whole number from 0, optional', 'Kept for copies of a step; this version writes none.'],
  [
    '`attempt`',
    'whole number from 1, optional',
    'Which attempt of the step. A retry adds one, an interruption does not.',
  ],
  ['`data`', 'map', 'What the event says, below.'],
];

const sample = {
  seq: 7,
  runId: 'k3v9m2xq7d',
  at: '2026-01-31T09:30:00.000Z',
  type: 'step.completed',
  step: 'deploy/build',
  attempt: 1,
  data: { output: { image: 'app:1.4.0' } },
};

const schemas = Object.fromEntries(
  eventTypes.map(type => [type, z.toJSONSchema(eventDataSchemas[type], { unrepresentable: 'any' })]),
);

const isError = schema => schema.properties?.code !== undefined && schema.properties.message !== undefined;

function section(type) {
  const { properties = {}, required = [] } = schemas[type];
  const rows = Object.entries(properties).map(([name, schema]) => [
    code(name),
    `${isError(schema) ? 'error' : typeName(schema)}${required.includes(name) ? '' : ', optional'}`,
    fields[`${type}.${name}`],
  ]);
  const data = rows.length > 0 ? table(['field', 'type', 'meaning'], rows) : 'No fields.';
  return [`### ${code(type)}`, moments[type], data].join('\n\n');
}

function errorRows() {
  const { properties, required } = schemas['step.failed'].properties.error;
  matchNotes('fields of errors', Object.keys(properties), errorFields);
  return Object.entries(properties).map(([name, schema]) => [
    code(name),
    `${typeName(schema)}${required.includes(name) ? '' : ', optional'}`,
    errorFields[name],
  ]);
}

/** Every event that a history may hold. */
export function eventsReference() {
  const names = eventTypes.flatMap(type =>
    Object.keys(schemas[type].properties ?? {}).map(name => `${type}.${name}`),
  );
  matchNotes('events', eventTypes, moments);
  matchNotes('fields of events', names, fields);
  return page(
    'Events',
    'The history of a run is a gapless list of events. `reprise history --json` prints one per line. An event that was written once can be read by every later version.',
    '## The envelope',
    table(['field', 'type', 'meaning'], envelope),
    block('json', JSON.stringify(sample)),
    '## Types',
    ...eventTypes.map(section),
    '## Errors in events',
    table(['field', 'type', 'meaning'], errorRows()),
  );
}
