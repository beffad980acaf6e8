import { expect, test } from 'vitest';
import { isJsonObject, type Json } from '../../core/json.ts';
import { configJsonSchema } from './config.ts';
import { workflowJsonSchema } from './schema.ts';
import { schemaKeys } from './source/explain-issues.ts';

/** Returns the paths of all properties without a description. */
function undescribed(schema: unknown, path: string): readonly string[] {
  if (Array.isArray(schema)) return schema.flatMap(item => undescribed(item, path));
  if (typeof schema !== 'object' || schema === null) return [];
  return Object.entries(schema).flatMap(([key, value]) => {
    if (key !== 'properties' || !isJsonObject(value)) return undescribed(value, `${path}/${key}`);
    return Object.entries(value).flatMap(([name, property]) => [
      ...(isJsonObject(property) && typeof property['description'] === 'string' ? [] : [`${path}/${name}`]),
      ...undescribed(property, `${path}/${name}`),
    ]);
  });
}

test.each([
  ['workflow', workflowJsonSchema()],
  ['configuration', configJsonSchema()],
])('every key of the %s schema has a description for editors and the reference', (_, schema) => {
  expect(undescribed(schema, '')).toEqual([]);
});

test('the schema of a step requires exactly one kind', () => {
  expect(workflowJsonSchema()).toMatchObject({
    required: ['steps'],
    additionalProperties: false,
    properties: {
      steps: {
        items: {
          oneOf: ['run', 'agent', 'uses', 'approve', 'land'].map(kind => ({ required: [kind] })),
        },
      },
    },
  });
});

test('schemaKeys finds the allowed keys through lists, maps and alternatives', () => {
  const schema = workflowJsonSchema() as Json;
  expect(schemaKeys(schema, ['steps', 0, 'retry', 'backoff'])).toEqual(['initial', 'factor', 'max']);
  expect(schemaKeys(schema, ['inputs', 'any'])).toContain('options');
  expect(schemaKeys(schema, ['nowhere'])).toEqual([]);
});
