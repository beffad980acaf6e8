import { readFileSync } from 'node:fs';
import type { FoundCase } from './find.ts';
import { loadCase } from './load.ts';
import type { CaseManifest } from './manifest.ts';

/** Throws DEFINITION_INVALID. */
export const readCase = ({ file, displayFile }: FoundCase): CaseManifest =>
  loadCase({ file, displayFile, text: readFileSync(file, 'utf8') });
