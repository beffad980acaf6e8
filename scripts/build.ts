/** Builds the package into `dist/`: its JavaScript, and the types of its entry points. */
import { buildPackage } from './build/package.ts';
import { buildTypes } from './build/types.ts';

await buildPackage();
await buildTypes();
