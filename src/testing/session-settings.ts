import type { SessionFactory } from '../agents/session.ts';
import type { CaseManifest } from '../cases/manifest/manifest.ts';

/** Sessions as the case wants them: with its model, and without thoughts unless they are to be shown. */
export const settled =
  (
    open: SessionFactory,
    { model, showThinking }: Pick<CaseManifest, 'model' | 'showThinking'>,
  ): SessionFactory =>
  (request, host) =>
    open(model === undefined ? request : { ...request, agent: { ...request.agent, model } }, {
      ...host,
      onEvent: event => {
        if (event.type !== 'thought' || showThinking) host.onEvent(event);
      },
    });
