import { hash } from 'node:crypto';
import { canonicalJson, type Json } from '../core/index.ts';

/** Returns a hash of 16 hex digits. The order of keys does not affect it. */
export const fingerprintOf = (description: Json): string => fingerprintOfText(canonicalJson(description));

/** Like `fingerprintOf`, for a description that is already serialized. */
export const fingerprintOfText = (description: string): string => hash('sha256', description).slice(0, 16);
