/** Agents that the tests run with. Their output changes from release to release, so each is pinned. */
export const agentPackages = {
  claude: { name: '@anthropic-ai/claude-code', version: '2.1.325', program: 'claude' },
  codex: { name: '@openai/codex', version: '0.166.0', program: 'codex' },
  acp: { name: '@agentclientprotocol/claude-agent-acp', version: '0.99.1', program: 'claude-agent-acp' },
  codexAcp: { name: '@agentclientprotocol/codex-acp', version: '2.6.0', program: 'codex-acp' },
  gemini: { name: '@google/gemini-cli', version: '0.61.0', program: 'gemini' },
  opencode: { name: 'opencode-ai', version: '1.18.33', program: 'opencode' },
  qwen: { name: '@qwen-code/qwen-code', version: '0.15.10', program: 'qwen' },
  copilot: { name: '@github/copilot', version: '1.0.102', program: 'copilot' },
} as const;
