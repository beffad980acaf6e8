import { readFileSync } from 'node:fs';
import { openSession } from '../../../../src/agents/kinds.ts';
import type { AgentEvent } from '../../../../src/agents/session.ts';

/**
 * Host of one session, for tests that kill it. Prints one event per line.
 * Usage: program.ts <file with { request, inheritEnv, marker }>
 */
const { request, inheritEnv, marker } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'));
const onEvent = (event: AgentEvent) => process.stdout.write(`${JSON.stringify(event)}\n`);
const session = openSession(request, { onEvent, graceMs: 2000, inheritEnv, marker });
await session.next();
await session.close();
