import { type StatusWord, safeLine } from '../view/index.ts';
import type { StepModel, WorkflowModel } from '../workflow/index.ts';
import { toStatusWord } from './glyphs.ts';
import { fanOutMarks, inOrder } from './graph.ts';

export interface MermaidOptions {
  /** Status of each step, by path. */
  readonly statuses?: ReadonlyMap<string, string> | undefined;
}

const styles: Readonly<Record<StatusWord, string>> = {
  pending: 'fill:#f6f8fa,stroke:#8c959f,color:#24292f',
  running: 'fill:#ddf4ff,stroke:#0969da,color:#24292f',
  waiting: 'fill:#fff8c5,stroke:#9a6700,color:#24292f',
  retrying: 'fill:#fff8c5,stroke:#9a6700,color:#24292f',
  completed: 'fill:#dafbe1,stroke:#1a7f37,color:#24292f',
  failed: 'fill:#ffebe9,stroke:#cf222e,color:#24292f',
  cancelled: 'fill:#fbefff,stroke:#8250df,color:#24292f',
  skipped: 'fill:#f6f8fa,stroke:#8c959f,color:#6e7781,stroke-dasharray:4',
};

/** Draws the graph as a Mermaid flowchart. A dotted arrow is a dependency that may fail. */
export function formatMermaid(workflow: WorkflowModel, { statuses }: MermaidOptions = {}): string {
  const ids = new Map<string, string>();
  const lines = ['flowchart TD', ...scopeLines(workflow, { prefix: '', indent: '  ', ids })];
  return `${[...lines, ...(statuses ? classLines(ids, statuses) : [])].join('\n')}\n`;
}

interface MermaidScope {
  readonly prefix: string;
  readonly indent: string;
  /** Mermaid node ids by path. They are numbered, because a step may be called `end`, which is a keyword of Mermaid. */
  readonly ids: Map<string, string>;
}

function scopeLines(workflow: WorkflowModel, scope: MermaidScope): readonly string[] {
  const { prefix, indent, ids } = scope;
  const steps = inOrder(workflow);
  const nodes = steps.flatMap(step => nodeLines(step, scope));
  const edges = steps.flatMap(({ id, needs }) =>
    needs.map(need => {
      const arrow = need.tolerant ? '-.->' : '-->';
      return `${indent}${ids.get(`${prefix}${need.id}`)} ${arrow} ${ids.get(`${prefix}${id}`)}`;
    }),
  );
  return [...nodes, ...edges];
}

function nodeLines(step: StepModel, { prefix, indent, ids }: MermaidScope): readonly string[] {
  const path = `${prefix}${step.id}`;
  const id = `s${ids.size}`;
  ids.set(path, id);
  const text = label(step);
  const { body } = step;
  switch (body.kind) {
    case 'function':
    case 'run':
    case 'land':
    case 'built-in':
      return [`${indent}${id}["${text}"]`];
    case 'agent':
      return [`${indent}${id}(["${text}"])`];
    case 'approve':
      return [`${indent}${id}{{"${text}"}}`];
    case 'uses': {
      if (body.workflow.steps.length === 0) return [`${indent}${id}[["${text}"]]`];
      const inner = scopeLines(body.workflow, { prefix: `${path}/`, indent: `${indent}  `, ids });
      return [`${indent}subgraph ${id}["${text}"]`, ...inner, `${indent}end`];
    }
  }
}

function label({ id, body, fanOut, condition, retry, optional }: StepModel): string {
  const marks = [
    ...(body.kind === 'uses' ? [`uses ${body.workflow.name}`] : []),
    ...(body.kind === 'agent' ? [`agent ${body.agent}`] : []),
    ...(body.kind === 'land' ? [`lands ${body.from}`] : []),
    ...(fanOut ? fanOutMarks(fanOut) : []),
    ...(condition ? ['conditional'] : []),
    ...(retry && retry.attempts > 1 ? [`up to ${retry.attempts} attempts`] : []),
    ...(optional ? ['optional'] : []),
  ];
  const name = escaped(id);
  return marks.length === 0 ? name : `${name}<br/>${escaped(marks.join(', '))}`;
}

/** Mermaid reads entity codes inside quotes, written with `#` for `&`. */
const escaped = (text: string): string =>
  safeLine(text).replace(/[#"<>&`\\[\]{}()|]/g, character => `#${character.codePointAt(0)};`);

function classLines(
  ids: ReadonlyMap<string, string>,
  statuses: ReadonlyMap<string, string>,
): readonly string[] {
  const groups = new Map<StatusWord, string[]>();
  for (const [path, id] of ids) {
    const status = statuses.get(path);
    if (status === undefined) continue;
    const word = toStatusWord(status);
    const group = groups.get(word);
    if (group) group.push(id);
    else groups.set(word, [id]);
  }
  return [...groups].flatMap(([word, group]) => [
    `  classDef ${word} ${styles[word]}`,
    `  class ${group.join(',')} ${word}`,
  ]);
}
