import { code } from './markdown.mjs';

/** One row for each key of a JSON Schema, nested ones with their path: `{ key, type, required, description }`. */
export function schemaRows(schema, prefix = '') {
  const required = schema.required ?? [];
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const key = prefix + name;
    const row = {
      key,
      type: typeName(property),
      required: required.includes(name),
      description: describe(property),
    };
    return [
      row,
      ...objectsIn(property).flatMap(({ schema: inner, suffix }) => schemaRows(inner, `${key}${suffix}.`)),
    ];
  });
}

/** The maps that a value may be, or hold, with what stands between its key and theirs. */
function objectsIn(schema) {
  if (schema.anyOf) return schema.anyOf.flatMap(objectsIn);
  if (schema.properties) return [{ schema, suffix: '' }];
  if (schema.items)
    return objectsIn(schema.items).map(({ schema: inner, suffix }) => ({
      schema: inner,
      suffix: `[]${suffix}`,
    }));
  if (schema.additionalProperties) {
    return objectsIn(schema.additionalProperties).map(({ schema: inner, suffix }) => ({
      schema: inner,
      suffix: `.<name>${suffix}`,
    }));
  }
  return [];
}

function describe({ description, anyOf = [] }) {
  const alternatives = anyOf
    .filter(({ description: own }) => own)
    .map(alternative => `As ${withArticle(typeName(alternative))}: ${lowerFirst(alternative.description)}`);
  return [description, ...alternatives].filter(Boolean).join(' ');
}

const lowerFirst = text => text.charAt(0).toLowerCase() + text.slice(1);
const withArticle = type => (/^(text|true)/.test(type) ? type : `a ${type}`);

/** A type in the words of somebody who writes the file. */
export function typeName(schema) {
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (schema.enum) return schema.enum.map(value => code(value)).join(', ');
  if (schema.anyOf)
    return [...new Set(schema.anyOf.map(typeName))].filter(name => name !== 'nothing').join(' or ');
  if (Array.isArray(schema.type))
    return schema.type
      .map(type => typeName({ type }))
      .filter(name => name !== 'nothing')
      .join(' or ');
  switch (schema.type) {
    case 'string':
      return stringName(schema.pattern);
    case 'integer':
      return `whole number from ${schema.minimum}`;
    case 'number':
      return schema.exclusiveMinimum === 0
        ? 'number above 0'
        : schema.minimum === undefined
          ? 'number'
          : `number from ${schema.minimum}`;
    case 'boolean':
      return 'true or false';
    case 'null':
      return 'nothing';
    case 'array':
      return `list of ${schema.items.type === 'object' ? 'maps' : typeName(schema.items)}`;
    case 'object':
      return 'map';
    default:
      return 'any JSON';
  }
}

function stringName(pattern) {
  if (pattern === undefined) return 'text';
  return pattern.includes('ms|s|m|h|d') ? 'duration' : 'id';
}
