import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Json } from '../core/json.ts';
import type { Marker } from '../process/table.ts';
import { type Lab, labPerTest } from '../process/test-support.ts';
import type { AgentDefinition } from './agent.ts';
import type { Protocol, ProtocolContext, Signal } from './driver/protocol.ts';
import { openSession } from './kinds.ts';
import type { PermissionPolicy } from './permissions/permissions.ts';
import type { AgentEvent, Session, SessionHost, SessionRequest, SessionResult, TurnEnd } from './session.ts';

export const agentOf = (given: Partial<AgentDefinition> = {}): AgentDefinition => ({
  name: 'coder',
  kind: 'command',
  permissions: 'edit',
  allow: [],
  deny: [],
  args: [],
  env: {},
  ...given,
});

export const policyOf = (given: Partial<PermissionPolicy> = {}): PermissionPolicy => ({
  agent: 'coder',
  preset: 'edit',
  allow: [],
  deny: [],
  ...given,
});

export const requestOf = (given: Partial<SessionRequest> = {}): SessionRequest => ({
  agent: agentOf(),
  prompt: 'Do it.',
  cwd: '/work',
  permissions: policyOf(),
  ...given,
});

/** Session in the lab with all its events. */
export interface TriedSession {
  readonly session: Session;
  readonly events: readonly AgentEvent[];
  /** Resolves with the first event of the type, once there is one. */
  waitFor(type: AgentEvent['type']): Promise<AgentEvent>;
}

/** Lab for sessions. A test fails if it leaves a process of an agent behind. */
export function agentLab() {
  const lab = labPerTest();
  return {
    get folder(): string {
      return lab().folder;
    },
    workspace: (): string => workspaceOf(lab()),
    /** Marker of all processes of the agents of this test. */
    marker: (): Marker => lab().marker,
    /** Writes a Node program and returns the command that runs it. */
    program(source: string): readonly string[] {
      const file = join(lab().folder, 'agent.mjs');
      writeFileSync(file, source);
      return [process.execPath, file];
    },
    open: (given: Partial<SessionRequest>, host: Partial<SessionHost> = {}) => open(lab(), given, host),
    /** Runs a whole session of an agent that asks no questions. */
    async run(given: Partial<SessionRequest>, host: Partial<SessionHost> = {}) {
      const tried = open(lab(), given, host);
      const turn = await tried.session.next();
      await tried.session.close();
      return { result: resultOf(turn), events: tried.events };
    },
  };
}

function open(lab: Lab, given: Partial<SessionRequest>, host: Partial<SessionHost>): TriedSession {
  const events: AgentEvent[] = [];
  const waiting = new Set<() => void>();
  const onEvent = (event: AgentEvent) => {
    events.push(event);
    for (const wake of waiting) wake();
  };
  const session = openSession(requestOf({ cwd: workspaceOf(lab), ...given }), {
    onEvent,
    graceMs: 2000,
    inheritEnv: process.env,
    marker: lab.marker,
    ...host,
  });
  const waitFor = async (type: AgentEvent['type']) => {
    for (;;) {
      const found = events.find(event => event.type === type);
      if (found) return found;
      await new Promise<void>(resolve => waiting.add(resolve));
    }
  };
  return { session, events, waitFor };
}

function workspaceOf({ folder }: Lab): string {
  const workspace = join(folder, 'workspace');
  mkdirSync(workspace, { recursive: true });
  return workspace;
}

export function resultOf(turn: TurnEnd): SessionResult {
  if (turn.kind === 'end') return turn.result;
  throw new Error(`asked instead of ending: ${JSON.stringify(turn.question)}`);
}

/** Feeds lines to a protocol as the driver does, and returns all its signals. */
export function signalsOf<State>(
  make: (context: ProtocolContext) => Protocol<State>,
  lines: readonly (string | Json)[],
  context: Partial<ProtocolContext> = {},
): readonly Signal[] {
  const protocol = make({
    request: requestOf(),
    rule: () => ({ kind: 'decided', decision: { kind: 'allow' } }),
    now: () => Date.parse('2026-01-01T00:00:00Z'),
    ...context,
  });
  let { state } = protocol.open();
  return lines.flatMap(line => {
    const step = protocol.take(state, typeof line === 'string' ? line : JSON.stringify(line));
    state = step.state;
    return step.signals;
  });
}

export const eventsIn = (signals: readonly Signal[]): readonly AgentEvent[] =>
  signals.flatMap(signal => (signal.kind === 'event' ? signal.event : []));

const streams = join(import.meta.dirname, 'fixtures', 'streams');

/** Returns the recorded output of real agents, without the messages sent to them. */
export const recordedStreams = (): readonly { readonly name: string; readonly lines: readonly string[] }[] =>
  readdirSync(streams)
    .toSorted()
    .map(name => {
      const lines = readFileSync(join(streams, name), 'utf8').trimEnd().split('\n');
      const isTwoWay = lines.some(line => line.startsWith('> '));
      const printed = isTwoWay ? lines.flatMap(line => (line.startsWith('< ') ? line.slice(2) : [])) : lines;
      return { name: name.replace('.ndjson', ''), lines: printed };
    });
