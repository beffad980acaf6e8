import { buildPackage } from '../../scripts/build/package.ts';

/** Global setup: builds the package, because tests that start processes run what users run. */
export default buildPackage;
