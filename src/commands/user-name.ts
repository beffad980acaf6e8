import type { CommandIo } from './io.ts';

/** Who sits here, as far as the environment says. */
export const userName = ({ env }: CommandIo): string | undefined =>
  env['USER'] || env['LOGNAME'] || env['USERNAME'] || undefined;
