import { expect, test } from 'vitest';
import { StepTree } from './step-board.ts';

const pathsOf = (tree: StepTree): readonly string[] => tree.steps.map(({ path }) => path);

test('what a child workflow holds is shown in each of its workers, and not beside them', () => {
  const tree = new StepTree();
  tree.set(['check', 'check/make', 'after', 'after/make']);
  expect(pathsOf(tree)).toEqual(['check', 'check/make', 'after', 'after/make']);
  tree.add(['check:0', 'check:1']);
  tree.add(['check:0/make']);
  expect(pathsOf(tree)).toEqual(['check', 'check:0', 'check:0/make', 'check:1', 'after', 'after/make']);
  expect(tree.get('check')?.children.map(({ path }) => path)).toEqual(['check:0', 'check:1']);
});

test('workers inside of a worker take the place of what they are made of', () => {
  const tree = new StepTree();
  tree.set(['fix', 'fix/try', 'fix/try/run']);
  tree.add(['fix:0']);
  tree.add(['fix:0/try', 'fix:0/try/run']);
  tree.add(['fix:0/try:0']);
  expect(pathsOf(tree)).toEqual(['fix', 'fix:0', 'fix:0/try', 'fix:0/try:0']);
});

test('they stay away when a resume brings the definition again', () => {
  const tree = new StepTree();
  tree.set(['check', 'check/make']);
  tree.add(['check:0', 'check:0/make']);
  tree.set(['check', 'check/make', 'new']);
  expect(pathsOf(tree)).toEqual(['check', 'check:0', 'check:0/make', 'new']);
});
