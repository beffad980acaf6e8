import { readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { blocksOf, pages } from './documents.ts';

const modules = readdirSync('examples', { recursive: true, encoding: 'utf8' })
  .filter(name => name.endsWith('.mjs'))
  .map(name => resolve('examples', name));

/** Compiles code as a user would, except that `reprise` is the source of this checkout. */
function problemsOf(sources: ReadonlyMap<string, string>, files: readonly string[]): readonly string[] {
  const config = ts.getParsedCommandLineOfConfigFile(
    'tsconfig.json',
    {},
    { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => {} },
  );
  const options: ts.CompilerOptions = {
    ...config?.options,
    allowJs: true,
    checkJs: true,
    noEmit: true,
    paths: { reprise: [resolve('src/index.ts')], 'reprise/testing': [resolve('src/testing.ts')] },
    allowImportingTsExtensions: true,
  };
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = file => sources.has(file) || fileExists(file);
  host.readFile = file => sources.get(file) ?? readFile(file);
  host.getSourceFile = (file, version, ...rest) => {
    const text = sources.get(file);
    return text === undefined
      ? getSourceFile(file, version, ...rest)
      : ts.createSourceFile(file, text, version);
  };
  const program = ts.createProgram([...sources.keys(), ...files], options, host);
  const own = program
    .getSourceFiles()
    .filter(({ fileName }) => sources.has(fileName) || files.includes(fileName));
  return own.flatMap(source =>
    ts.getPreEmitDiagnostics(program, source).map(problem => describeProblem(source, problem)),
  );
}

function describeProblem(source: ts.SourceFile, { start = 0, messageText }: ts.Diagnostic): string {
  const { line } = source.getLineAndCharacterOfPosition(start);
  return `${source.fileName}:${line + 1}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
}

describe('TypeScript in the documentation', () => {
  const blocks = pages().flatMap(page => blocksOf(page).filter(({ language }) => language === 'ts'));
  const sources = new Map(
    blocks.map(({ place, text }) => [resolve(`${place.replace(/[:/]/g, '_')}.ts`), text]),
  );
  const undeclared = `import { step } from 'reprise';
export const a = step('a', { run: () => 1 });
export const b = step('b', { run: ({ a }) => a });`;

  it('compiles, as do the examples, but a step cannot read an output that it does not declare', () => {
    expect(sources.size).toBeGreaterThan(5);
    expect(modules.length).toBeGreaterThan(2);
    const problems = problemsOf(new Map([...sources, [resolve('undeclared.ts'), undeclared]]), modules);
    expect(problems).toEqual([expect.stringMatching(/undeclared\.ts:3: Property 'a' does not exist/)]);
  });
});
