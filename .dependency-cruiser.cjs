/**
 * Imports go one way. A room may import the rooms that stand before it in this list, and its own files.
 * Rooms in one group do not know each other.
 */
const order = [
  ['core'],
  ['world', 'workflow'],
  ['store', 'process'],
  ['conductor', 'git', 'agents'],
  ['engine'],
  ['worker'],
  ['report'],
  ['commands'],
  ['testing', 'server'],
  ['cli'],
];

const rooms = order.flatMap((group, level) =>
  group.map(room => ({ room, allowed: [room, ...order.slice(0, level).flat()] })),
);

module.exports = {
  forbidden: [
    ...rooms.map(({ room, allowed }) => ({
      name: `${room}-imports-downwards`,
      severity: 'error',
      from: { path: `^src/${room}/`, pathNot: '\\.(test|conformance)\\.tsx?$' },
      to: { path: '^src/', pathNot: `^src/(${allowed.join('|')})/` },
    })),
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'core-is-pure',
      severity: 'error',
      from: { path: '^src/core/', pathNot: '\\.test\\.ts$' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'no-undeclared-packages',
      severity: 'error',
      from: { path: '^src/', pathNot: '(\\.(test|conformance)\\.tsx?|/test-support\\.ts)$' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'types', 'default'] },
  },
};
