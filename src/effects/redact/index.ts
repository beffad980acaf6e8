export {
  beginsAt,
  createRedactor,
  endsHere,
  type NamedPath,
  pathForms,
  placeholderName,
  type Redactor,
} from './redact.ts';
export { mayHoldToken, tokenPatterns } from './secret-patterns.ts';
export { formsOf, isSecretValue, type Secret, secretsOf } from './secrets.ts';
