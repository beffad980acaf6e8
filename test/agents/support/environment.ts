import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import type { FakeModel } from '../../support/fake-model/server.ts';
import type { InstalledAgents } from './install.ts';

/** Where an agent keeps its settings and sessions, and the model that it talks to. */
export interface Surroundings {
  readonly agents: InstalledAgents;
  readonly model: FakeModel;
  /** A temporary folder: nothing of the user's is read or written. */
  readonly home: string;
}

type Environment = Readonly<Record<string, string>>;

/** Some agents hide their key wherever it appears in what they print, so it is none that could. */
const key = 'not-a-key-the-model-is-on-loopback';

/** Enough for every agent: a home of its own, and no way out but to the model, which notes who tries. */
function commonEnvironment({ model, home }: Surroundings, programs: readonly string[]): Environment {
  mkdirSync(home, { recursive: true });
  const folders = [...programs, process.execPath].map(program => dirname(program));
  return {
    PATH: [...folders, '/usr/bin', '/bin'].join(delimiter),
    HOME: home,
    ...proxies(model.url),
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_NOSYSTEM: '1',
  };
}

const proxies = (url: string): Environment =>
  Object.fromEntries(
    ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY']
      .flatMap(name => [name, name.toLowerCase()])
      .map(name => [name, url] as const)
      .concat([
        ['NO_PROXY', '127.0.0.1'],
        ['no_proxy', '127.0.0.1'],
      ]),
  );

/** Claude Code with the model at `ANTHROPIC_BASE_URL`. */
export const claudeEnvironment = (surroundings: Surroundings): Environment => ({
  ...commonEnvironment(surroundings, [surroundings.agents.claude]),
  CLAUDE_CONFIG_DIR: join(surroundings.home, 'claude'),
  ANTHROPIC_BASE_URL: surroundings.model.url,
  ANTHROPIC_API_KEY: key,
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_TELEMETRY: '1',
  DISABLE_AUTOUPDATER: '1',
  CLAUDE_CODE_MAX_RETRIES: '2',
});

/** Codex with the model as its provider, by a settings file: the one that it has built in cannot be led elsewhere. */
export function codexEnvironment(surroundings: Surroundings): Environment {
  const codexHome = join(surroundings.home, 'codex');
  mkdirSync(codexHome, { recursive: true });
  writeFileSync(join(codexHome, 'config.toml'), codexSettings(surroundings.model.url));
  return {
    ...commonEnvironment(surroundings, [surroundings.agents.codex]),
    CODEX_HOME: codexHome,
    OPENAI_API_KEY: key,
  };
}

const codexSettings = (url: string): string => `model = "gpt-5.5"
model_provider = "fake"
check_for_update_on_startup = false

[features]
plugins = false
apps = false

[analytics]
enabled = false

[model_providers.fake]
name = "fake"
base_url = "${url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 2
stream_max_retries = 2
`;

/** The ACP server around Claude Code. */
export const acpEnvironment = (surroundings: Surroundings): Environment => ({
  ...claudeEnvironment(surroundings),
  ...commonEnvironment(surroundings, [surroundings.agents.acp]),
  CLAUDE_CODE_EXECUTABLE: surroundings.agents.claude,
});
