import { existsSync, watch } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterEach } from 'vitest';
import type { SessionHost, SessionRequest } from '../../../src/agents/session.ts';
import { agentLab } from '../../../src/agents/test-support.ts';
import type { ModelScript } from '../../support/fake-model/script.ts';
import { type FakeModel, startFakeModel } from '../../support/fake-model/server.ts';
import { installedAgents } from './install.ts';
import type { Player } from './players.ts';

/** Lab in which real agents talk to a fake model that each test scripts. */
export function realAgentLab() {
  const models: FakeModel[] = [];
  const lab = agentLab();
  afterEach(async () => {
    await Promise.all(models.splice(0).map(model => model.close()));
  });
  return {
    workspace: lab.workspace,
    marker: lab.marker,
    path: (name: string): string => join(lab.workspace(), name),
    /** Starts a model for an agent, with separate settings folders. */
    async prepare({ agent, permissions, environment }: Player, script: ModelScript) {
      const agents = installedAgents();
      if (!agents) throw new Error('the agents are not installed');
      const model = await startFakeModel(script);
      models.push(model);
      const inheritEnv = environment({ agents, model, home: join(lab.folder, 'home') });
      return {
        model,
        inheritEnv,
        open: (given: Partial<SessionRequest>, host: Partial<SessionHost> = {}) =>
          lab.open({ agent, permissions, ...given }, { inheritEnv, ...host }),
        run: (given: Partial<SessionRequest>, host: Partial<SessionHost> = {}) =>
          lab.run({ agent, permissions, ...given }, { inheritEnv, ...host }),
      };
    },
  };
}

/** Resolves when the file exists. */
export async function appears(file: string): Promise<void> {
  const stop = new AbortController();
  const changes = new Promise<void>(resolve => {
    watch(dirname(file), { signal: stop.signal }, (_, name) => {
      if (name === basename(file)) resolve();
    });
  });
  if (!existsSync(file)) await changes;
  stop.abort();
}
