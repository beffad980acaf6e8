import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import type { FakeModel } from '../../support/fake-model/server.ts';
import type { InstalledAgents } from './install.ts';

/** Programs, model and home folder of the agents in a test. */
export interface Surroundings {
  readonly agents: InstalledAgents;
  readonly model: FakeModel;
  /** Temporary home folder, so that the settings of the user are neither read nor written. */
  readonly home: string;
}

type Environment = Readonly<Record<string, string>>;

/** Fake API key. Some agents redact their key in all output, so it must not occur anywhere else. */
const key = 'not-a-key-the-model-is-on-loopback';

/** Environment of every agent: its own home, and a proxy that only reaches the model and records other requests. */
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

/** Environment of Claude Code, with the model at `ANTHROPIC_BASE_URL`. */
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

/** Environment of Codex, with the model as a provider in its settings, because the built-in provider has a fixed URL. */
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

/** Environment of the ACP server for Claude Code. */
export const acpEnvironment = (surroundings: Surroundings): Environment => ({
  ...claudeEnvironment(surroundings),
  ...commonEnvironment(surroundings, [surroundings.agents.acp]),
  CLAUDE_CODE_EXECUTABLE: surroundings.agents.claude,
});

/** The ACP server around Codex. */
export const codexAcpEnvironment = (surroundings: Surroundings): Environment => ({
  ...codexEnvironment(surroundings),
  ...commonEnvironment(surroundings, [surroundings.agents.codexAcp]),
});

export function geminiEnvironment(surroundings: Surroundings): Environment {
  writeSettings(surroundings, '.gemini/settings.json', {
    security: { auth: { selectedType: 'gemini-api-key' } },
    privacy: { usageStatisticsEnabled: false },
  });
  return {
    ...commonEnvironment(surroundings, [surroundings.agents.gemini]),
    GEMINI_API_KEY: key,
    GOOGLE_GEMINI_BASE_URL: surroundings.model.url,
    GEMINI_CLI_TRUST_WORKSPACE: 'true',
    GEMINI_MODEL: 'gemini-2.5-pro',
  };
}

export function opencodeEnvironment(surroundings: Surroundings): Environment {
  const options = { baseURL: `${surroundings.model.url}/v1`, apiKey: key };
  const models = { fake: { name: 'fake', tool_call: true, limit: { context: 200_000, output: 8000 } } };
  const provider = { fake: { npm: '@ai-sdk/openai-compatible', name: 'fake', options, models } };
  const settings = { model: 'fake/fake', small_model: 'fake/fake', provider };
  writeSettings(surroundings, '.config/opencode/opencode.json', settings);
  return {
    ...commonEnvironment(surroundings, [surroundings.agents.opencode]),
    XDG_CONFIG_HOME: join(surroundings.home, '.config'),
    XDG_DATA_HOME: join(surroundings.home, '.data'),
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_MODELS_FETCH: '1',
  };
}

export const qwenEnvironment = (surroundings: Surroundings): Environment => ({
  ...commonEnvironment(surroundings, [surroundings.agents.qwen]),
  // It would ask the proxy for the model too, whatever `NO_PROXY` says.
  ...Object.fromEntries(Object.keys(proxies('')).map(name => [name, ''])),
  OPENAI_API_KEY: key,
  OPENAI_BASE_URL: `${surroundings.model.url}/v1`,
  OPENAI_MODEL: 'fake',
});

export const copilotEnvironment = (surroundings: Surroundings): Environment => ({
  ...commonEnvironment(surroundings, [surroundings.agents.copilot]),
  COPILOT_OFFLINE: 'true',
  COPILOT_PROVIDER_BASE_URL: `${surroundings.model.url}/v1`,
  COPILOT_PROVIDER_API_KEY: key,
  COPILOT_MODEL: 'fake',
});

function writeSettings({ home }: Surroundings, name: string, settings: object): void {
  const file = join(home, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify(settings));
}
