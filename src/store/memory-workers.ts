import { byStart, type WorkerRecord, type WorkerRegistry } from './workers.ts';

/** A registry that lives and dies with the process. What is kept and what is read are copies. */
export function memoryWorkers() {
  const workers = new Map<string, WorkerRecord>();
  const list = (): readonly WorkerRecord[] => [...workers.values()].map(copyOf).sort(byStart);
  const registry: WorkerRegistry = {
    async put(worker) {
      workers.set(worker.incarnation, copyOf(worker));
    },

    async remove(incarnation) {
      workers.delete(incarnation);
    },

    async list() {
      return list();
    },
  };
  return { registry, list };
}

/** Flat, and without what a store on disk would not keep. */
function copyOf(worker: WorkerRecord): WorkerRecord {
  const copy: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(worker)) if (value !== undefined) copy[field] = value;
  return copy as unknown as WorkerRecord;
}
