import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect } from 'vitest';
import { type StartProcessOptions, startProcess } from './start.ts';
import type { Marker } from './table.ts';
import { endTrees, markedWith } from './tree.ts';

/** Temporary folder and unique marker of one test. The test fails if it leaves a process running. */
export interface Lab {
  readonly folder: string;
  readonly marker: Marker;
  /** Starts `sh -c script` in the folder and collects the lines that it prints. */
  sh(
    script: string,
    options?: Partial<StartProcessOptions>,
  ): ReturnType<typeof startProcess> & { readonly lines: Lines };
}

/**
 * Script that prints `ready` and waits for a child. The child prints it, after its exec: a signal that reaches a shell
 * between fork and exec is swallowed by the traps of its parent.
 */
export const readyWithSleeper = 'sh -c "echo ready; exec sleep 1000" & while :; do wait; done';

/** Creates a lab for each test of a file or `describe`. Returns a getter for the current one. */
export function labPerTest(): () => Lab {
  let lab: Lab;
  beforeEach(() => {
    lab = openLab();
  });
  afterEach(async () => {
    const { marker, folder } = lab;
    const left = markedWith(marker);
    await endTrees({ roots: [], marked: marker, graceMs: 0 });
    rmSync(folder, { recursive: true, force: true });
    expect(left).toEqual([]);
  });
  return () => lab;
}

function openLab(): Lab {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-process-'));
  const marker = { REPRISE_INCARNATION: randomUUID() };
  return {
    folder,
    marker,
    sh: (script, options) => {
      const lines = new Lines();
      const defaults = { cwd: folder, env: process.env, marker, onLine: lines.add };
      return { ...startProcess({ argv: ['sh', '-c', script], ...defaults, ...options }), lines };
    },
  };
}

/** Lines in the order of their arrival. */
export class Lines {
  readonly all: string[] = [];
  readonly #waiting = new Set<() => void>();

  readonly add = (_stream: string, line: string): void => {
    this.all.push(line);
    for (const wake of this.#waiting) wake();
  };

  /** Waits for the first line that begins with `start`, and returns the rest of it. */
  async after(start: string): Promise<string> {
    for (;;) {
      const line = this.all.find(each => each.startsWith(start));
      if (line !== undefined) return line.slice(start.length);
      await new Promise<void>(resolve => this.#waiting.add(resolve));
    }
  }
}
