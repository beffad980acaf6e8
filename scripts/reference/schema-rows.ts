import { code } from './markdown.ts';

/** Part of JSON Schema that the references use. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly anyOf?: readonly JsonSchema[];
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema | false;
}

export interface SchemaRow {
  readonly key: string;
  readonly type: string;
  readonly required: boolean;
  readonly description: string;
}

/** Returns one row for each key of a JSON Schema. The key of a nested row is its path. */
export function schemaRows(schema: JsonSchema, prefix = ''): readonly SchemaRow[] {
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

/** Returns the maps that a value may be or contain, each with the suffix of its path. */
function objectsIn(schema: JsonSchema): readonly { readonly schema: JsonSchema; readonly suffix: string }[] {
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

function describe({ description, anyOf = [] }: JsonSchema): string {
  const alternatives = anyOf.flatMap(alternative =>
    alternative.description
      ? `As ${withArticle(typeName(alternative))}: ${lowerFirst(alternative.description)}`
      : [],
  );
  return [description, ...alternatives].filter(Boolean).join(' ');
}

const lowerFirst = (text: string) => text.charAt(0).toLowerCase() + text.slice(1);
const withArticle = (type: string) => `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`;

const plural = (type: string) => (/^(string|id|map|JSON value)$/.test(type) ? `${type}s` : type);

/** Returns the name of a type for readers of the page. */
export function typeName(schema: JsonSchema): string {
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (schema.enum) return schema.enum.map(value => code(value)).join(', ');
  if (schema.anyOf)
    return [...new Set(schema.anyOf.map(typeName))].filter(name => name !== 'nothing').join(' or ');
  if (typeof schema.type === 'object')
    return schema.type
      .map(type => typeName({ type }))
      .filter(name => name !== 'nothing')
      .join(' or ');
  switch (schema.type) {
    case 'string':
      return stringName(schema.pattern);
    case 'integer':
      return `integer ≥ ${schema.minimum}`;
    case 'number':
      return schema.exclusiveMinimum === 0
        ? 'number > 0'
        : schema.minimum === undefined
          ? 'number'
          : `number ≥ ${schema.minimum}`;
    case 'boolean':
      return 'boolean';
    case 'null':
      return 'nothing';
    case 'array':
      return `list of ${schema.items?.type === 'object' ? 'maps' : plural(typeName(schema.items ?? {}))}`;
    case 'object':
      return 'map';
    default:
      return 'JSON value';
  }
}

function stringName(pattern: string | undefined): string {
  if (pattern === undefined) return 'string';
  return pattern.includes('ms|s|m|h|d') ? 'duration' : 'id';
}
