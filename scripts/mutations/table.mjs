export const titleOf = ({ group, name }) => (group === '' ? name : `${group}/${name}`);

export const firstLine = ({ failures }) => {
  const [failure] = failures;
  return failure ? `${failure.kind}: ${failure.message.split('\n')[0]}` : 'failed';
};

const width = { name: 34, title: 30, line: 110 };

/** One mutation in the table: whether it was caught, and below it by which cases, with what they say first. */
export function verdictLines({ mutation, caught, problem }) {
  const verdict = caught.length > 0 ? `caught by ${caught.length}` : 'NOT CAUGHT';
  return [
    `${mutation.name.padEnd(width.name)} ${verdict}${problem ? ` (${problem})` : ''}`,
    ...caught.map(result => `    ${titleOf(result).padEnd(width.title)} ${cut(firstLine(result))}`),
  ];
}

const cut = text => (text.length > width.line ? `${text.slice(0, width.line - 1)}…` : text);
