export { type FoundCase, findCases, type Orphan } from './find.ts';
export { readCase } from './load.ts';
export { type CaseManifest, faultKinds } from './manifest.ts';
