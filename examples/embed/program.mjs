// @ts-check
import { approve, openEngine, step, workflow } from 'reprise';

const draft = step('draft', { run: () => ({ text: 'We are open again on Monday.' }) });
const review = approve('review', {
  after: { draft },
  message: ({ draft: { text } }) => `Send this? ${text}`,
});
const send = step('send', {
  after: { draft, review },
  run: ({ draft, review }) => `sent (${review.by}): ${draft.text}`,
});
const newsletter = workflow('newsletter', { steps: [draft, review, send], output: { send } });

const { engine, store, close } = await openEngine({
  root: process.cwd(),
  env: process.env,
  observe: observation => {
    if (observation.kind !== 'events') return;
    for (const { type, step: path = '' } of observation.events) console.error(type, path);
  },
});
try {
  const first = await engine.start({ workflow: newsletter });
  console.error('the run is', first.status);

  // In a real program the answer comes later and from another process, such as a web page or a chat.
  const answer = { kind: /** @type {const} */ ('approval'), step: 'review', choice: 'approve', by: 'ana' };
  await store.post(first.runId, answer, new Date().toISOString());

  const second = await engine.resume({ workflow: newsletter, runId: first.runId });
  console.log(JSON.stringify(second.status === 'completed' ? second.output : second));
} finally {
  await close();
}
