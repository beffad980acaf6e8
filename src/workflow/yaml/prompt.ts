import type { Position } from '../../core/errors.ts';
import { toText } from '../expression/values.ts';
import type { Selector } from '../model.ts';
import { compileTemplate, compileText } from './compile/expressions.ts';
import { LineIndex } from './lines.ts';
import type { StepDefinition } from './schema.ts';
import type { BodySite } from './site.ts';
import type { TextSource } from './source/problem-list.ts';

/** A file that holds a prompt. */
export interface PromptFile {
  /** The path as people see it. */
  readonly displayFile: string;
  readonly text: string;
}

/** Finds the file of a prompt: a path relative to the file of the workflow. */
export type PromptReader = (reference: string, fromFile: string) => PromptFile | undefined;

interface CompiledPrompt {
  readonly select: Selector<string>;
  /** What the file holds, if it stands in one, for the fingerprint. */
  readonly fileText?: string | undefined;
}

/** A prompt is a template like any text, also if it stands in a file of its own. */
export function compilePrompt(
  prompt: NonNullable<StepDefinition['prompt']>,
  site: BodySite,
  read: PromptReader | undefined,
): CompiledPrompt {
  const path = [...site.path, 'prompt'];
  if (typeof prompt === 'string') {
    const text = compileText(prompt, path, site);
    return { select: scope => text(site.surroundings(scope)) };
  }
  const file = read?.(prompt.file, site.source.file);
  const objection = !file
    ? { message: `there is no file \`${prompt.file}\``, hint: 'the path counts from the folder of this file' }
    : file.text.trim() === ''
      ? { message: `the file \`${prompt.file}\` is empty` }
      : undefined;
  if (objection) site.problems.add(site.source, { path: [...path, 'file'], ...objection });
  const { faults, value } = compileTemplate(file?.text ?? '', site.visible);
  if (file) site.problems.addText(new PromptSource(file), faults);
  return { select: scope => toText(value(site.surroundings(scope))), fileText: file?.text };
}

class PromptSource implements TextSource {
  readonly lines: LineIndex;
  readonly #file: string;

  constructor({ displayFile, text }: PromptFile) {
    this.lines = new LineIndex(text);
    this.#file = displayFile;
  }

  positionOf(offset: number): Position {
    return { file: this.#file, ...this.lines.at(offset) };
  }
}
