/** Checks the size of the source tree: lines per file, files per folder, doors, and names with two meanings. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import ts from 'typescript';

const limits = {
  linesPerFile: 450,
  p90: 320,
  medianFrom: 120,
  medianTo: 200,
  filesPerFolder: 25,
};

/** Maximum number of modules of a room that other rooms import. */
const visibleModules: Readonly<Record<string, number>> = { git: 12, engine: 12, effects: 8 };

/** Type names that may have a different meaning in each room, with the reason. At most ten. */
const sharedTypeNames: Readonly<Record<string, string>> = {};

const root = join(import.meta.dirname, '..');
const isTest = (file: string) =>
  /\.(test|conformance)\.tsx?$|(^|\/)(test-support|fixtures)(\.ts$|\/)/.test(file);
const roomOf = (file: string) => (file.split('/').length > 2 ? file.split('/')[1] : undefined);

interface SourceFile {
  readonly path: string;
  readonly lines: number;
  readonly node: ts.SourceFile;
}

const sources: SourceFile[] = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
  .filter(entry => entry.isFile() && /\.tsx?$/.test(entry.name))
  .map(entry => posix.normalize(join(entry.parentPath, entry.name).slice(root.length + 1)))
  .filter(path => !isTest(path))
  .sort()
  .map(path => {
    const text = readFileSync(join(root, path), 'utf8');
    const node = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
    return { path, lines: text.split('\n').length - 1, node };
  });

const isDoor = ({ node }: SourceFile) =>
  node.statements.length > 0 &&
  node.statements.every(
    statement => ts.isExportDeclaration(statement) && statement.moduleSpecifier !== undefined,
  );

const problems: string[] = [];
const doors = sources.filter(isDoor);
const files = sources.filter(source => !isDoor(source));

const sizes = files.map(({ lines }) => lines).sort((a, b) => a - b);
const quantile = (share: number) => sizes[Math.min(sizes.length - 1, Math.floor(sizes.length * share))] ?? 0;
const median = quantile(0.5);
const p90 = quantile(0.9);
const totalLines = sizes.reduce((sum, lines) => sum + lines, 0);
if (median < limits.medianFrom || median > limits.medianTo) {
  problems.push(`the median file has ${median} lines, not ${limits.medianFrom} to ${limits.medianTo}`);
}
if (p90 >= limits.p90)
  problems.push(`the 90th percentile is ${p90} lines, which must be below ${limits.p90}`);
for (const { path, lines } of files) {
  if (lines > limits.linesPerFile)
    problems.push(`${path} has ${lines} lines, at most ${limits.linesPerFile}`);
}

const folders = new Map<string, SourceFile[]>();
for (const file of files) {
  const inside = folders.get(dirname(file.path));
  if (inside) inside.push(file);
  else folders.set(dirname(file.path), [file]);
}
for (const [folder, inside] of folders) {
  if (inside.length > limits.filesPerFolder) {
    problems.push(`${folder} has ${inside.length} files, at most ${limits.filesPerFolder}`);
  }
}

for (const { path, node } of sources) {
  for (const statement of node.statements) {
    if (ts.isExportDeclaration(statement) && statement.moduleSpecifier && !statement.exportClause) {
      problems.push(`${path} re-exports a whole module: list the names`);
    }
  }
  const visit = (child: ts.Node): void => {
    if (ts.isNonNullExpression(child)) problems.push(`${path}: \`!\` at ${lineOf(node, child)}`);
    if (child.kind === ts.SyntaxKind.AnyKeyword) problems.push(`${path}: \`any\` at ${lineOf(node, child)}`);
    ts.forEachChild(child, visit);
  };
  visit(node);
}

const visible = new Map<string, Set<string>>();
for (const { path, node } of sources) {
  const see = (specifier: string): void => {
    if (!specifier.startsWith('.')) return;
    const target = posix.join(dirname(path), specifier);
    const room = roomOf(target);
    if (room === undefined || room === roomOf(path)) return;
    visible.set(room, (visible.get(room) ?? new Set()).add(target));
  };
  const visit = (child: ts.Node): void => {
    if (ts.isStringLiteral(child) && isModuleSpecifier(child)) see(child.text);
    ts.forEachChild(child, visit);
  };
  visit(node);
}
for (const [room, limit] of Object.entries(visibleModules)) {
  const count = visible.get(room)?.size ?? 0;
  if (count > limit)
    problems.push(`${count} modules of ${room} are visible from other rooms, at most ${limit}`);
}

const declared = new Map<string, string[]>();
for (const { path, node } of sources) {
  const visit = (child: ts.Node): void => {
    if (
      ts.isInterfaceDeclaration(child) ||
      ts.isTypeAliasDeclaration(child) ||
      ts.isClassDeclaration(child)
    ) {
      const name = child.name?.text;
      if (name) declared.set(name, [...(declared.get(name) ?? []), `${path}:${lineOf(node, child)}`]);
    }
    ts.forEachChild(child, visit);
  };
  visit(node);
}
const several = [...declared].filter(([, places]) => places.length > 1);
for (const [name, places] of several) {
  if (!(name in sharedTypeNames))
    problems.push(`the type \`${name}\` is declared ${places.length} times: ${places.join(', ')}`);
}
if (Object.keys(sharedTypeNames).length > 10) problems.push('more than ten type names may have two meanings');

function isModuleSpecifier(literal: ts.StringLiteral): boolean {
  const { parent } = literal;
  if (ts.isImportDeclaration(parent) || ts.isExportDeclaration(parent)) return true;
  if (ts.isCallExpression(parent)) return parent.expression.kind === ts.SyntaxKind.ImportKeyword;
  return ts.isLiteralTypeNode(parent) && ts.isImportTypeNode(parent.parent);
}

function lineOf(source: ts.SourceFile, node: ts.Node): number {
  return source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
}

const largest = [...folders].sort(([, a], [, b]) => b.length - a.length)[0];
console.log(
  `${files.length} source files and ${doors.length} doors, ${totalLines} lines in ${folders.size} folders`,
);
console.log(`lines per file: median ${median}, p90 ${p90}, max ${sizes.at(-1)}`);
console.log(`largest folder: ${largest?.[0]} (${largest?.[1].length} files)`);
const counts = [...visible].sort().map(([room, modules]) => `${room} ${modules.size}`);
console.log(`modules visible from other rooms: ${counts.join(', ')}`);
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
