import type { Command } from 'commander';

export function declaredProgram(): Promise<Command>;
