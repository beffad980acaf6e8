import { buildPackage } from '../../scripts/build/package.ts';

/** Tests that start real processes run what users run: the built package. */
export default buildPackage;
