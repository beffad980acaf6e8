import { hash } from 'node:crypto';
import { canonicalJson, type Json } from '../core/json.ts';

/** 16 hex digits that stand for a description; the order of its keys does not matter. */
export const fingerprintOf = (description: Json): string =>
  hash('sha256', canonicalJson(description)).slice(0, 16);
