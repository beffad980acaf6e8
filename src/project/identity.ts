import { randomUUID } from 'node:crypto';
import { thisProcess } from '../process/table.ts';
import type { Owner } from '../store/port.ts';

/** This process as the holder of locks, for the length of one command. */
export const thisOwner = (): Owner => ({ ...thisProcess(), incarnation: randomUUID() });
