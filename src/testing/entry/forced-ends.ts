import { RepriseError, toErrorData } from '../../core/errors.ts';
import { type Json, toJson } from '../../core/json.ts';
import type { World } from '../../effects/world.ts';
import type { Message, StepEnd } from '../../engine/run/messages.ts';
import type { Body } from '../../workflow/model.ts';
import type { ForcedEnd } from '../what-if/override.ts';

export interface ForcedEnds {
  readonly endOf: (unit: string) => ForcedEnd | undefined;
  /** Told of an output that the step could not have given. */
  readonly onProblem: (error: RepriseError) => void;
}

/** The world in which the work of some steps ends as it is told to, whatever it came to. What was cancelled stays so. */
export const withForcedEnds = (world: World, forced: ForcedEnds): World => ({
  open: (lane, body) => world.open(lane, body),
  effect: definition => world.effect(definition),
  fork: body => world.fork(body),
  join: lanes => world.join(lanes),
  cancel: lanes => world.cancel(lanes),
  mailbox: <T>(name: string, options?: Parameters<typeof world.mailbox<T>>[1]) => {
    const mailbox = world.mailbox<T>(name, options);
    return {
      receiveAll: () => mailbox.receiveAll(),
      send: (message: T) => mailbox.send(changed(message as unknown as Message, forced) as unknown as T),
    };
  },
});

function changed(message: Message, { endOf, onProblem }: ForcedEnds): Message {
  if (message.kind !== 'ended' || message.end.kind === 'cancelled') return message;
  const { step, unit } = message.node.node;
  const forced = endOf(unit);
  return forced ? { ...message, end: endFrom(forced, message.end, { body: step.body, onProblem }) } : message;
}

function endFrom(
  forced: ForcedEnd,
  end: StepEnd,
  { body, onProblem }: { readonly body: Body } & Pick<ForcedEnds, 'onProblem'>,
): StepEnd {
  if (forced.kind === 'failure') return { kind: 'failed', error: forced.error };
  try {
    const artifacts = end.kind === 'completed' ? end.artifacts : undefined;
    return { kind: 'completed', output: outputFor(body, forced.output), ...(artifacts ? { artifacts } : {}) };
  } catch (thrown) {
    const { message, hint } = toErrorData(thrown);
    const error = new RepriseError(
      'OUTPUT_INVALID',
      `override.${forced.key} is no output of the step: ${message}`,
      {
        hint,
      },
    );
    onProblem(error);
    return { kind: 'failed', error: toErrorData(error) };
  }
}

/** As the step itself would have checked it. */
function outputFor(body: Body, output: Json): Json {
  switch (body.kind) {
    case 'agent': {
      const said = typeof output === 'string' ? { text: output } : output;
      if (body.output) return toJson(body.output.parse(output));
      if (typeof said === 'object' && said !== null && 'text' in said) return said;
      throw new RepriseError('OUTPUT_INVALID', 'the agent answers with text', {
        hint: 'give it as { text: ... }',
      });
    }
    case 'function':
    case 'run':
      return body.parseOutput ? toJson(body.parseOutput(output)) : output;
    case 'land':
    case 'built-in':
    case 'uses':
    case 'approve':
      return output;
  }
}
