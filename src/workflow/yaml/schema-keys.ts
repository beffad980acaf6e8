import { isJsonObject, type Json } from '../../core/json.ts';
import type { Path } from './source/yaml-source.ts';

/** The keys that a JSON Schema allows at a path; empty where anything goes. */
export function schemaKeys(schema: Json, path: Path): readonly string[] {
  let alternatives = unfold(schema);
  for (const key of path) alternatives = alternatives.flatMap(alternative => unfold(step(alternative, key)));
  const keys = alternatives.flatMap(({ properties }) =>
    isJsonObject(properties) ? Object.keys(properties) : [],
  );
  return [...new Set(keys)];
}

type Schema = { readonly [key: string]: Json | undefined };

function step(schema: Schema, key: string | number): Json | undefined {
  if (typeof key === 'number') return schema['items'];
  const properties = schema['properties'];
  return isJsonObject(properties) && Object.hasOwn(properties, key)
    ? properties[key]
    : schema['additionalProperties'];
}

function unfold(schema: Json | undefined): readonly Schema[] {
  if (!isJsonObject(schema)) return [];
  const { anyOf } = schema;
  return Array.isArray(anyOf) ? anyOf.flatMap(alternative => unfold(alternative)) : [schema];
}
