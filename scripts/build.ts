/** Builds the package into `dist/`: the JavaScript, and the types of the entry points. */
import { buildPackage } from './build/package.ts';
import { buildTypes } from './build/types.ts';

await buildPackage();
await buildTypes();
