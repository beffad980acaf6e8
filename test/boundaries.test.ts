import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

/** Folders whose code gets time, random numbers and processes only through ports. */
const pureFolders = ['src/core', 'src/workflow', 'src/store', 'src/engine'];
const clockFile = 'src/core/time.ts';

const forbiddenModules =
  /^(node:)?(child_process|timers|timers\/promises|worker_threads|perf_hooks|process)$/;
const forbiddenNames = new Set([
  'Date',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'queueMicrotask',
  'performance',
  'process',
  'globalThis',
  'randomUUID',
  'randomBytes',
  'getRandomValues',
]);

interface Source {
  readonly file: string;
  readonly text: string;
  readonly mayConvertTimes?: boolean;
}

/** Returns `file:line: name` for each use that is forbidden in these folders. */
function violationsIn({ file, text, mayConvertTimes = false }: Source): string[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const report = (node: ts.Node, what: string) => {
    const { line } = source.getLineAndCharacterOfPosition(node.getStart());
    found.push(`${file}:${line + 1}: ${what}`);
  };
  const visit = (node: ts.Node): void => {
    const module = importedModule(node);
    if (module !== undefined && forbiddenModules.test(module)) report(node, `imports ${module}`);
    if (isUse(node) && !(node.text === 'Date' && isHarmlessDate(node, mayConvertTimes)))
      report(node, node.text);
    if (isMathRandom(node)) report(node, 'Math.random');
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function importedModule(node: ts.Node): string | undefined {
  if ((ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier) {
    return ts.isStringLiteral(node.moduleSpecifier) ? node.moduleSpecifier.text : undefined;
  }
  if (!ts.isCallExpression(node)) return undefined;
  const loads =
    node.expression.kind === ts.SyntaxKind.ImportKeyword || node.expression.getText() === 'require';
  const [module] = node.arguments;
  return loads && module && ts.isStringLiteralLike(module) ? module.text : undefined;
}

/** Whether an identifier refers to the forbidden global, and is not a type, a key, a parameter or a property. */
function isUse(node: ts.Node): node is ts.Identifier {
  if (!ts.isIdentifier(node) || !forbiddenNames.has(node.text)) return false;
  const { parent } = node;
  if (ts.isImportSpecifier(parent)) return (parent.propertyName ?? parent.name) === node;
  if (ts.isPropertyAccessExpression(parent) && parent.name === node) return node.text.includes('andom');
  if (ts.isTypeReferenceNode(parent) || ts.isQualifiedName(parent)) return false;
  if (ts.isShorthandPropertyAssignment(parent)) return true;
  if (ts.isBindingElement(parent) && parent.propertyName === node) return false;
  return !('name' in parent && parent.name === node);
}

function isHarmlessDate(date: ts.Identifier, mayConvertTimes: boolean): boolean {
  const { parent } = date;
  if (ts.isBinaryExpression(parent)) return parent.operatorToken.kind === ts.SyntaxKind.InstanceOfKeyword;
  if (!mayConvertTimes) return false;
  if (ts.isNewExpression(parent)) return (parent.arguments?.length ?? 0) > 0;
  return ts.isPropertyAccessExpression(parent) && parent.name.text === 'parse';
}

const isMathRandom = (node: ts.Node): boolean =>
  ts.isPropertyAccessExpression(node) && node.name.text === 'random' && node.expression.getText() === 'Math';

function sourcesOf(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(name => join(folder, name));
  return files.filter(file => file.endsWith('.ts') && !/(\.(test|conformance)\.ts$|\/fixtures\/)/.test(file));
}

describe('the folders without access to the outside', () => {
  it.each(pureFolders)('%s uses no clock, random number, timer or process', folder => {
    const files = sourcesOf(folder);
    expect(files.length).toBeGreaterThan(3);
    const found = files.flatMap(file =>
      violationsIn({ file, text: readFileSync(file, 'utf8'), mayConvertTimes: file === clockFile }),
    );
    expect(found).toEqual([]);
  });
});

describe('the boundary check', () => {
  const check = (text: string, mayConvertTimes = false) =>
    violationsIn({ file: 'x.ts', text, mayConvertTimes });

  it.each([
    ['const at = Date.now();', 'Date'],
    ['const at = new Date();', 'Date'],
    ['const clock = Date;', 'Date'],
    ['const luck = Math.random();', 'Math.random'],
    ['setTimeout(() => {}, 1);', 'setTimeout'],
    ['setInterval(tick, 1);', 'setInterval'],
    ['const later = { setImmediate };', 'setImmediate'],
    ['queueMicrotask(tick);', 'queueMicrotask'],
    ['const t = performance.now();', 'performance'],
    ['const cwd = process.cwd();', 'process'],
    ['const at = globalThis.Date.now();', 'globalThis'],
    ['const id = crypto.randomUUID();', 'randomUUID'],
    ["import { randomBytes as dice } from 'node:crypto';", 'randomBytes'],
    ["import { spawn } from 'node:child_process';", 'imports node:child_process'],
    ["export * from 'worker_threads';", 'imports worker_threads'],
    ["const timers = await import('node:timers/promises');", 'imports node:timers/promises'],
    ["import 'node:process';", 'imports node:process'],
  ])('refuses %s', (text, what) => {
    expect(check(`\n${text}`)).toEqual([`x.ts:2: ${what}`]);
  });

  it.each([
    'const is = (value: unknown): value is Date => value instanceof Date;',
    'interface Store { add(process: number): void; performance: string }',
    'const { setTimeout: wait } = options; options.performance; // Date.now()',
    "import { hash } from 'node:crypto';",
    'const random = generator.random();',
    "const hint = 'process.exit';",
  ])('accepts %s', text => {
    expect(check(text)).toEqual([]);
  });

  it('allows the time module to convert times but not to read the clock', () => {
    expect(check('const a = new Date(ms).toISOString(); const b = Date.parse(text);', true)).toEqual([]);
    expect(check('const a = new Date(); const b = Date.now();', true)).toEqual([
      'x.ts:1: Date',
      'x.ts:1: Date',
    ]);
  });
});
