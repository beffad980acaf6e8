import type { SessionRequest } from './session.ts';

/** All that is to be told before the work: the step's own words, then the agent's. */
export const systemPromptOf = ({ agent, systemPrompt }: SessionRequest): string | undefined =>
  [systemPrompt, agent.systemPrompt].filter(Boolean).join('\n\n') || undefined;

/** For agents that have no place of their own for a system prompt. */
export const wholePrompt = (request: SessionRequest): string =>
  [systemPromptOf(request), request.prompt].filter(Boolean).join('\n\n');

/** For agents that know no schemas either. */
export const promptWithSchema = (request: SessionRequest): string =>
  request.outputSchema
    ? `${wholePrompt(request)}\n\n${schemaRequest(JSON.stringify(request.outputSchema))}`
    : wholePrompt(request);

const schemaRequest = (schema: string): string =>
  `When the work is done, end with exactly one JSON value in a \`\`\`json code fence. It must fit this JSON Schema:\n${schema}`;

/** What is said when the work goes on after a limit. */
export const continuePrompt = 'Please go on where you stopped.';
