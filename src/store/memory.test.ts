import { describeEventStore } from './event-store.conformance.ts';
import { memoryStores } from './memory.ts';

describeEventStore('the memory store', async () => {
  const open = memoryStores();
  const store = open();
  return { store, inProject: async project => open(project), cleanup: () => store.close() };
});
