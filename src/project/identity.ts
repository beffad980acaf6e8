import { randomUUID } from 'node:crypto';
import { thisProcess } from '../process/table.ts';
import type { Owner } from '../store/port.ts';
import type { CommandIo } from './host.ts';

/** This process as the holder of locks, for the length of one command. */
export const thisOwner = (): Owner => ({ ...thisProcess(), incarnation: randomUUID() });

/** Who sits here, as far as the environment says. */
export const userName = ({ env }: CommandIo): string | undefined =>
  env['USER'] || env['LOGNAME'] || env['USERNAME'] || undefined;
