import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { onTestFinished } from 'vitest';
import type { TestContext } from '../../../src/cases/context.ts';
import type { FoundCase } from '../../../src/cases/manifest/find.ts';
import { readCase } from '../../../src/cases/manifest/load.ts';
import type { CaseManifest } from '../../../src/cases/manifest/manifest.ts';
import type { PlayedStep, Program } from '../../../src/cases/perform/perform.ts';
import { recordCase } from '../../../src/cases/record/record.ts';
import { replayCase } from '../../../src/cases/replay/replay.ts';
import type { CaseFailure } from '../../../src/cases/result.ts';
import { testContext } from '../../../src/cli/other-commands.ts';
import { runProgram } from '../../../src/cli/program.ts';
import type { HistoryEvent } from '../../../src/core/events.ts';
import { openSqliteStore } from '../../../src/store/sqlite/store.ts';
import { stateOf } from '../../support/state.ts';

/** Result of performing a case, with the path of the stage replaced. */
export interface LabOutcome {
  readonly failures: readonly CaseFailure[];
  /** Output of each command, by its name. */
  readonly outputs: Readonly<Record<string, string>>;
  /** Events of every run of the case, by run id. */
  readonly histories: Readonly<Record<string, readonly HistoryEvent[]>>;
  readonly main: string;
  readonly snapshot?: string | undefined;
}

/** A case in its own temporary project, removed at the end of the test. */
export class CaseLab {
  readonly found: FoundCase;
  readonly #root: string;

  constructor(toml: string, name = 'played') {
    this.#root = realpathSync(mkdtempSync(join(tmpdir(), 'reprise-tapes-')));
    onTestFinished(() => rmSync(this.#root, { recursive: true, force: true, maxRetries: 5 }));
    const folder = join(this.#root, 'cases', name);
    const file = join(folder, `${name}.toml`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, toml);
    this.found = { name, group: '', folder, file, displayFile: `cases/${name}/${name}.toml` };
  }

  /** Performs the case for real and records it. */
  async record(): Promise<LabOutcome> {
    const observer = new Observer();
    const replay: typeof replayCase = (found, manifest) =>
      replayCase(found, manifest, this.#context(new Observer()));
    const { failures, played } = await recordCase(
      this.found,
      this.manifest(),
      this.#context(observer),
      replay,
    );
    return observer.outcome({ failures, played });
  }

  /** Replays the case from its recording. `manifest` defaults to the one in the case file. */
  async replay(manifest: CaseManifest = this.manifest()): Promise<LabOutcome> {
    const observer = new Observer();
    const { failures, played, snapshot } = await replayCase(this.found, manifest, this.#context(observer));
    return { ...observer.outcome({ failures, played }), snapshot };
  }

  manifest(): CaseManifest {
    return readCase(this.found);
  }

  /** Returns the contents of all files of the case, by path. */
  readonly files = (): Readonly<Record<string, string>> => {
    const files = readdirSync(this.found.folder, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile())
      .map(entry => join(entry.parentPath, entry.name).slice(this.found.folder.length + 1))
      .sort();
    return Object.fromEntries(
      files.map(file => [file, readFileSync(join(this.found.folder, file), 'latin1')]),
    );
  };

  write(file: string, text: string): void {
    writeFileSync(join(this.found.folder, file), text);
  }

  #context(observer: Observer): TestContext {
    const env = { ...process.env, CI: undefined };
    return { ...testContext({ env, cwd: resolve('.') }, observer.program), cwd: this.#root };
  }
}

/** Reads main and all histories after each command, while the stage still exists. */
class Observer {
  #histories: Record<string, readonly HistoryEvent[]> = {};
  #main = '';
  #stage = '';

  readonly program: Program = async (args, io) => {
    this.#stage = dirname(io.cwd);
    try {
      return await runProgram(args, io);
    } finally {
      await this.#look(io.cwd);
    }
  };

  outcome({
    failures,
    played,
  }: {
    readonly failures: readonly CaseFailure[];
    readonly played: readonly PlayedStep[];
  }): LabOutcome {
    return this.#withoutStage({
      failures,
      outputs: Object.fromEntries(played.map(({ step, output }) => [step.name, output])),
      histories: this.#histories,
      main: this.#main,
    });
  }

  async #look(repo: string): Promise<void> {
    this.#main = execFileSync('git', ['rev-parse', 'main'], { cwd: repo, encoding: 'utf8' }).trim();
    const file = join(repo, stateOf(repo), 'reprise.db');
    if (!existsSync(file)) return;
    const store = await openSqliteStore({ file, readonly: true });
    try {
      const runs = await store.list();
      for (const { runId } of runs) this.#histories[runId] = await store.read(runId);
    } finally {
      await store.close();
    }
  }

  #withoutStage<T>(value: T): T {
    return this.#stage === '' ? value : JSON.parse(JSON.stringify(value).replaceAll(this.#stage, '<stage>'));
  }
}
