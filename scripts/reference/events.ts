import { z } from 'zod';
import { type EventType, eventDataSchemas, eventTypes } from '../../src/core/events.ts';
import { errorFields, fields, moments } from './event-notes.ts';
import { block, code, matchNotes, page, table } from './markdown.ts';
import { type JsonSchema, typeName } from './schema-rows.ts';

const envelope = [
  [
    '`seq`',
    'integer ≥ 1',
    'Position in the history, without gaps. `reprise history --json` numbers the events in canonical order; `--raw` shows their real position.',
  ],
  ['`runId`', 'string', 'Id of the run.'],
  [
    '`at`',
    'string',
    'Time at which it was written: ISO 8601, UTC, milliseconds. No other field holds a time.',
  ],
  ['`type`', 'string', 'One of the types below.'],
  [
    '`step`',
    'string, optional',
    'Path of the step, such as `deploy`, or `deploy/build` inside a child workflow. Absent on events of the run.',
  ],
  ['`worker`', 'integer ≥ 0, optional', 'Number of the copy, on events of a copy of a fanned-out step.'],
  [
    '`attempt`',
    'integer ≥ 1, optional',
    'Number of the attempt. A retry increments it, an interruption does not.',
  ],
  ['`data`', 'map', 'Fields of this type of event, listed below.'],
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

const schemaOf = (type: EventType): JsonSchema =>
  z.toJSONSchema(eventDataSchemas[type], { unrepresentable: 'any' }) as JsonSchema;

const isError = ({ properties }: JsonSchema) =>
  properties?.['code'] !== undefined && properties['message'] !== undefined;

function section(type: EventType): string {
  const { properties = {}, required = [] } = schemaOf(type);
  const rows = Object.entries(properties).map(([name, schema]) => [
    code(name),
    `${isError(schema) ? 'error' : typeName(schema)}${required.includes(name) ? '' : ', optional'}`,
    fields[`${type}.${name}`],
  ]);
  const data = rows.length > 0 ? table(['field', 'type', 'meaning'], rows) : 'No fields.';
  return [`### ${code(type)}`, moments[type], data].join('\n\n');
}

function errorRows() {
  const { properties = {}, required = [] } = schemaOf('step.failed').properties?.['error'] ?? {};
  matchNotes('fields of errors', Object.keys(properties), errorFields);
  return Object.entries(properties).map(([name, schema]) => [
    code(name),
    `${typeName(schema)}${required.includes(name) ? '' : ', optional'}`,
    errorFields[name],
  ]);
}

/** The page on events: the envelope, then every type with its fields. */
export function eventsReference(): string {
  const names = eventTypes.flatMap(type =>
    Object.keys(schemaOf(type).properties ?? {}).map(name => `${type}.${name}`),
  );
  matchNotes('events', eventTypes, moments);
  matchNotes('fields of events', names, fields);
  return page(
    'Events',
    'The history of a run is a list of events without gaps. `reprise history --json` prints one event per line. Every later version of Reprise can read the events that an earlier version wrote.',
    '## The envelope',
    table(['field', 'type', 'meaning'], envelope),
    block('json', JSON.stringify(sample)),
    '## Types',
    ...eventTypes.map(section),
    '## Errors in events',
    table(['field', 'type', 'meaning'], errorRows()),
  );
}
