import { randomUUID } from 'node:crypto';
import { thisProcess } from '../process/index.ts';
import type { Owner } from '../store/index.ts';
import type { CommandIo } from './host.ts';

/** Returns this process as an owner of locks and runs, with a new incarnation for each command. */
export const thisOwner = (): Owner => ({ ...thisProcess(), incarnation: randomUUID() });

/** Returns the name of the user from the environment. */
export const userName = ({ env }: CommandIo): string | undefined =>
  env['USER'] || env['LOGNAME'] || env['USERNAME'] || undefined;
