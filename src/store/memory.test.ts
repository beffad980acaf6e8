import { describeEventStore } from './event-store.conformance.ts';
import { memoryStore } from './memory.ts';

describeEventStore('the memory store', async () => {
  const store = memoryStore();
  return { store, cleanup: () => store.close() };
});
