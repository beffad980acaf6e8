import { isJsonObject, type Json, type JsonObject, toJson } from '../../core/json.ts';
import type { InputField } from '../model.ts';
import type { Schema } from './schema.ts';

/** The fields of an object schema, for help and for `--input key=value`. As good as the schema can say; never throws. */
export function inputFields(schema: Schema): readonly InputField[] {
  const described = jsonSchemaOf(schema);
  const properties = described?.['properties'];
  if (!described || !isJsonObject(properties)) return fieldNames(schema);
  const required = Array.isArray(described['required']) ? described['required'] : [];
  return Object.entries(properties).map(([name, property]) =>
    toField({ name, property: isJsonObject(property) ? property : {}, required: required.includes(name) }),
  );
}

function jsonSchemaOf(schema: Schema): JsonObject | undefined {
  if (!('toJSONSchema' in schema) || typeof schema.toJSONSchema !== 'function') return undefined;
  try {
    const described = toJson(schema.toJSONSchema({ io: 'input', unrepresentable: 'any' }));
    return isJsonObject(described) ? described : undefined;
  } catch {
    return undefined;
  }
}

interface Property {
  readonly name: string;
  readonly property: JsonObject;
  readonly required: boolean;
}

function toField({ name, property, required }: Property): InputField {
  const { description, default: byDefault } = property;
  return {
    name,
    ...typeOf(property),
    required,
    ...(byDefault === undefined ? {} : { default: byDefault }),
    ...(typeof description === 'string' ? { description } : {}),
  };
}

function typeOf(property: JsonObject): Pick<InputField, 'type' | 'options'> {
  const { enum: options, const: constant, anyOf, type } = property;
  if (isTexts(options)) return { type: 'choice', options };
  if (typeof constant === 'string') return { type: 'choice', options: [constant] };
  if (Array.isArray(anyOf)) {
    const only = onlyOne(anyOf.filter(isJsonObject).filter(({ type }) => type !== 'null'));
    return only ? typeOf(only) : { type: 'json' };
  }
  switch (Array.isArray(type) ? onlyOne(type.filter(name => name !== 'null')) : type) {
    case 'string':
      return { type: 'string' };
    case 'boolean':
      return { type: 'boolean' };
    case 'number':
    case 'integer':
      return { type: 'number' };
    default:
      return { type: 'json' };
  }
}

const onlyOne = <T>(items: readonly T[]): T | undefined => (items.length === 1 ? items[0] : undefined);

const isTexts = (value: Json | undefined): value is readonly string[] =>
  Array.isArray(value) && value.every(item => typeof item === 'string');

/** For schemas that cannot describe themselves (zod/mini): the names, and whether they are required. */
function fieldNames(schema: Schema): readonly InputField[] {
  const shape = at(at(schema._zod, 'def'), 'shape');
  if (typeof shape !== 'object' || shape === null) return [];
  return Object.entries(shape).map(([name, field]) => ({
    name,
    type: 'json',
    required: at(at(field, '_zod'), 'optin') === undefined,
  }));
}

const at = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
