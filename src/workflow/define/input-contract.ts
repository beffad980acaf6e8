import { RepriseError, toErrorData } from '../../core/errors.ts';
import { isJsonObject, type Json, toJson } from '../../core/json.ts';
import type { InputContract, InputField } from '../model.ts';
import { inputFields } from './input-fields.ts';
import { parseWith, type Schema } from './schema.ts';

/** What a workflow accepts: what the schema says, or, without one, any object. */
export function inputContract(workflow: string, schema: Schema | undefined): InputContract {
  if (!schema) return { parse: raw => parseAnyObject(workflow, raw), fields: [] };
  let fields: readonly InputField[] | undefined;
  return {
    parse: raw => {
      const outcome = parseWith({ schema, value: raw === undefined ? {} : raw, root: 'input' });
      if (outcome.kind === 'refused') throw refusal(workflow, outcome);
      return storable(workflow, outcome.value);
    },
    get fields() {
      fields ??= inputFields(schema);
      return fields;
    },
  };
}

function parseAnyObject(workflow: string, raw: unknown): Json {
  const value = raw === undefined ? {} : raw;
  if (!isJsonObject(value)) throw refusal(workflow, { issues: ['input: expected an object'] });
  return storable(workflow, value);
}

function storable(workflow: string, value: unknown): Json {
  try {
    return toJson(value, 'input');
  } catch (thrown) {
    throw refusal(workflow, { issues: [toErrorData(thrown).message], cause: thrown });
  }
}

function refusal(
  workflow: string,
  { issues, cause }: { readonly issues: readonly string[]; readonly cause?: unknown },
): RepriseError {
  const list = issues.map(issue => `\n  ${issue}`).join('');
  return new RepriseError('INPUT_INVALID', `the input does not fit workflow "${workflow}":${list}`, {
    cause,
  });
}
