import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../../src/workflow/yaml/config.ts';
import { loadWorkflow } from '../../src/workflow/yaml/load.ts';
import { stepSchema, workflowSchema } from '../../src/workflow/yaml/schema.ts';
import { type Block, blocksOf, pages } from './documents.ts';

const blocks = pages().flatMap(page => blocksOf(page).filter(({ language }) => language === 'yaml'));

/** Loads a block, which is a workflow, a list of steps, some keys of a workflow, or settings of a project. */
function load({ place, text }: Block): unknown {
  const value: unknown = parse(text);
  if (Array.isArray(value)) return value.map(step => stepSchema.parse(step));
  if (typeof value !== 'object' || value === null) throw new Error('neither a list nor a map');
  if ('steps' in value) return loadWorkflow({ file: place, text });
  const part = workflowSchema.partial().safeParse(value);
  return part.success ? part.data : loadConfig({ file: place, text });
}

describe('YAML in the documentation', () => {
  it('is found', () => {
    expect(blocks.length).toBeGreaterThan(20);
  });

  it.each(blocks)('at $place loads without problems', block => {
    expect(() => load(block)).not.toThrow();
  });

  it.each(['steps: [{ id: a, needs: [b], run: x }]', '- { id: a, rum: x }', 'runtime: { max_workers: 2 }'])(
    'is refused if it is invalid: %s',
    text => {
      expect(() => load({ place: 'x.yaml', language: 'yaml', text })).toThrow();
    },
  );
});

describe('the YAML example', () => {
  it.each(['examples/release/release.yaml', 'examples/matrix-by-child/matrix.yaml'])(
    '%s loads without problems',
    file => {
      const read = (path: string) => ({ file: path, text: readFileSync(path, 'utf8') });
      const load = () =>
        loadWorkflow({
          ...read(resolve(file)),
          resolve: (reference, from) => read(resolve(dirname(from), reference)),
        });
      expect(load).not.toThrow();
    },
  );
});
