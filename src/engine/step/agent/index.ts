export { type AgentMessage, Conversation, SessionCount } from './conversation.ts';
export { checkPrompt } from './prompts.ts';
export type { SessionEnd } from './session.ts';
export { slotsOf } from './slots.ts';
