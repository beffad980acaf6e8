import { hash } from 'node:crypto';
import { canonicalJson, type Json } from '../core/json.ts';

/** 16 hex digits that stand for a description; the order of its keys does not matter. */
export const fingerprintOf = (description: Json): string => fingerprintOfText(canonicalJson(description));

/** The same for a description that is a text already. */
export const fingerprintOfText = (description: string): string => hash('sha256', description).slice(0, 16);
