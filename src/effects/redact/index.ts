export {
  beginsAt,
  createRedactor,
  endsHere,
  type NamedPath,
  pathForms,
  placeholderName,
  type Redactor,
  withStatePlace,
} from './redact.ts';
export { mayHoldToken, tokenPatterns } from './secret-patterns.ts';
export {
  findMarked,
  formsOf,
  isSecretValue,
  marksOf,
  type Secret,
  type SecretMarks,
  secretsOf,
  secretsOfInput,
} from './secrets.ts';
