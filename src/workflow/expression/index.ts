export type { ParseFault } from './parse.ts';
