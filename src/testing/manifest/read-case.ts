import { readFileSync } from 'node:fs';
import type { FoundCase } from '../../cases/manifest/find.ts';
import type { CaseManifest } from '../../cases/manifest/manifest.ts';
import { loadCase } from './load.ts';

/** Throws DEFINITION_INVALID. */
export const readCase = ({ file, displayFile }: FoundCase): CaseManifest =>
  loadCase({ file, displayFile, text: readFileSync(file, 'utf8') });
