import { byStart, type WorkerRecord, type WorkerRegistry } from './workers.ts';

/** A registry that lives and dies with the process. Records are kept as JSON text, so that what is read is a copy. */
export function memoryWorkers(): WorkerRegistry {
  const workers = new Map<string, string>();
  return {
    async put(worker) {
      workers.set(worker.incarnation, JSON.stringify(worker));
    },

    async remove(incarnation) {
      workers.delete(incarnation);
    },

    async list() {
      return [...workers.values()].map((text): WorkerRecord => JSON.parse(text)).sort(byStart);
    },
  };
}
