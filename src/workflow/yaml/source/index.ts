export { explainIssues, schemaKeys } from './explain-issues.ts';
export { type Complaint, LineIndex, ProblemList } from './problem-list.ts';
export { isTooDeep, keyText, type Path, type Range, YamlSource } from './yaml-source.ts';
