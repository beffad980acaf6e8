import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Where schedules of a case are kept that broke something. */
export const racesFolder = (caseFolder: string): string => join(caseFolder, 'races');

export const hasRaces = (caseFolder: string): boolean => existsSync(racesFolder(caseFolder));
